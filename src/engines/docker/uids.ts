import { randomInt } from 'node:crypto'
import type { DaemonInfo } from './environment.ts'

/**
 * The uids of one engine's containers. No two living containers share one, because the kernel counts processes and other
 * resources per uid.
 */
export class Uids {
  readonly #live = new Set<number>()
  readonly #random: (from: number, to: number) => number

  /** @param random a whole number of a range. Only tests replace it. */
  constructor(random: (from: number, to: number) => number = (from, to) => randomInt(from, to)) {
    this.#random = random
  }

  /** Draws a uid that no living container of this engine has, until it is released. */
  draw(info: DaemonInfo): number {
    const range = uidsOf(info)
    let uid = this.#random(...range)
    while (this.#live.has(uid)) uid = this.#random(...range)
    this.#live.add(uid)
    return uid
  }

  release(uid: number): void {
    this.#live.delete(uid)
  }
}

/**
 * Returns a range so large that uids of different engines rarely collide. With userns-remap or a rootless daemon there are at
 * most 65,536.
 */
function uidsOf({ securityOptions }: DaemonInfo): readonly [number, number] {
  const isMapped = securityOptions.some((option) => /name=(userns|rootless)/.test(option))
  return isMapped ? [20_000, 60_000] : [2_000_100_000, 2_100_000_000]
}
