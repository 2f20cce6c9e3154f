import type { Random } from '../../test/support/random.ts'

/** Bytes that mean something to a line splitter, a decoder of UTF-8 or a parser of JSON. */
const PIECES: readonly Buffer[] = [
  '\n',
  '\r',
  '\r\n',
  '\n\n\n',
  '\0',
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '\u2028',
  '\u0085',
  '\uFEFF',
  '\u{1F600}',
  '\\u',
  '\\ud83d',
  ' \t ',
  '{"type":"script_done","execution_id":"r2"}\n',
]
  .map((text) => Buffer.from(text))
  .concat(
    [
      [0xff],
      [0xfe, 0xff],
      [0xc0, 0x80], // an overlong NUL
      [0xc1, 0x8a], // an overlong newline
      [0xed, 0xa0, 0x80], // a surrogate
      [0xf4, 0x90, 0x80, 0x80], // beyond U+10FFFF
      [0xe2, 0x80], // a character that does not end
      [0xf0, 0x9f],
      [0x80],
    ].map((bytes) => Buffer.from(bytes)),
  )

/** Changes bytes in one way: flips a bit, adds, removes, truncates or repeats a piece, or inserts a part of `other`. */
export function mutatedBytes(bytes: Buffer, other: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1)
  const head = bytes.subarray(0, at)
  const tail = bytes.subarray(at)
  const some = random.between(1, random.oneIn(4) ? 64 : 4)
  switch (random.below(10)) {
    case 0:
    case 1:
      return flipped(bytes, random)
    case 2:
    case 3:
      return Buffer.concat([head, random.pick(PIECES), tail])
    case 4:
      return Buffer.concat([head, tail.subarray(some)])
    case 5:
      return head
    case 6:
      return Buffer.concat([head, other.subarray(random.below(other.length + 1))])
    case 7:
      return Buffer.concat([head, tail.subarray(0, some), tail])
    case 8:
      return Buffer.concat([head, random.bytes(some), tail])
    default:
      return Buffer.concat([head, random.pick(PIECES), tail.subarray(some)])
  }
}

function flipped(bytes: Buffer, random: Random): Buffer {
  if (bytes.length === 0) return random.bytes(1)
  const changed = Buffer.from(bytes)
  const at = random.below(changed.length)
  changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8))
  return changed
}

/** Cuts bytes into pieces: one, single bytes (at most `mostSingle`), two, or pieces of random size. */
export function cut(bytes: Buffer, random: Random, mostSingle = 2048): Buffer[] {
  switch (random.below(6)) {
    case 0:
      return [bytes]
    case 1:
      if (bytes.length <= mostSingle) return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
      return cutBy(bytes, () => random.between(1, 4096))
    case 2: {
      const at = random.below(bytes.length + 1)
      return [bytes.subarray(0, at), bytes.subarray(at)]
    }
    case 3:
      return cutBy(bytes, () => 1 + Math.floor(bytes.length / 16))
    default: {
      const longest = Math.max(4, Math.ceil(bytes.length / 8))
      return cutBy(bytes, () => random.between(random.oneIn(16) ? 0 : 1, longest))
    }
  }
}

function cutBy(bytes: Buffer, next: () => number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const length = next()
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}
