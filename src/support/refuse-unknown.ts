import { didYouMean } from './nearest.ts'

/** @throws TypeError for an unknown option, with the nearest known one. */
export function refuseUnknown(where: string, given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (!known.includes(name))
      throw new TypeError(`${where}: unknown option ${JSON.stringify(name)}.${didYouMean(name, known)}`)
  }
}
