/** A frame of an attached connection, as Docker sends it. */
export function frame(stream: 'stdout' | 'stderr', payload: Uint8Array): Buffer {
  const header = Buffer.alloc(8)
  header[0] = stream === 'stdout' ? 1 : 2
  header.writeUInt32BE(payload.length, 4)
  return Buffer.concat([header, payload])
}

/** Pseudorandom numbers and bytes that are the same in each run of a test. */
export interface Random {
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number
  bytes(count: number): Uint8Array
}

/** A linear congruential generator, sufficient for cutting streams. */
export function randomBytes(seed: number): Random {
  let state = BigInt(seed)
  const next = (): number => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) & 0xffff_ffff_ffff_ffffn
    return Number(state >> 33n)
  }
  const below = (limit: number): number => next() % limit
  return { below, bytes: (count) => Uint8Array.from({ length: count }, () => below(256)) }
}
