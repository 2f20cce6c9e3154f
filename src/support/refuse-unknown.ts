import { didYouMean } from './nearest.ts'

/** @throws TypeError for an option that does not exist, with the nearest one that does. */
export function refuseUnknown(where: string, given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name))
      throw new TypeError(`${where}: no option ${JSON.stringify(name)}.${didYouMean(name, known)}`)
  }
}
