import type { Fields } from './corpus.ts'
import type { Random } from '../../test/support/random.ts'

const NUMBERS: readonly string[] = [
  '9007199254740991',
  '9007199254740992',
  '-9007199254740993',
  '123456789012345678901234567890',
  '1e400',
  '-1E+999',
  '1e308',
  '5e-324',
  '1e-400',
  '-0',
  '0.1',
  '1e16',
  '-1',
  '4294967296',
  '2147483648',
  'NaN',
  'Infinity',
  '01',
  '1.',
]
const STRINGS: readonly string[] = [
  '""',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\u2028\u2029"',
  '"\\n\\r\\u0085"',
  '"__proto__"',
  '"constructor"',
  '"../../etc/passwd"',
  '"/abs"',
  '"a//b/./.."',
  '"r2"',
  '"script_done"',
  '"\uFEFF"',
  '"\u{1F600}"',
  '"\\q"',
]
const OTHERS: readonly string[] = [
  'null',
  'true',
  'false',
  '[]',
  '{}',
  '[[]]',
  '{"__proto__":{"type":"final_result","polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"toString":null,"valueOf":1,"hasOwnProperty":2,"then":3,"toJSON":4}',
  '{"length":-1}',
  'undefined',
  '',
]
const KEYS: readonly string[] = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'type',
  'execution_id',
  'data',
  'id',
  '',
  '\u0000',
  'then',
]
/** Lengths at the limits of the protocol, and their neighbours. */
const LENGTHS: readonly number[] = [
  63, 64, 65, 255, 256, 257, 400, 1023, 1024, 1025, 4096, 4097, 65_535, 65_536, 65_537,
]
const DEPTHS: readonly number[] = [2, 150, 198, 199, 200, 201, 202, 203, 500, 1000, 5000]

/** JSON text that a field does not expect. */
export function hostileJson(random: Random): string {
  switch (random.below(16)) {
    case 0:
      return nested(random, random.pick(DEPTHS))
    case 1:
      return random.oneIn(20) ? nested(random, 100_000) : nested(random, 10)
    case 2:
      return JSON.stringify(random.pick(['x', 'ü', '\n', '"', '\u0000']).repeat(random.pick(LENGTHS)))
    case 3:
    case 4:
    case 5:
    case 6:
      return random.pick(NUMBERS)
    case 7:
    case 8:
    case 9:
    case 10:
      return random.pick(STRINGS)
    default:
      return random.pick(OTHERS)
  }
}

/**
 * Writes a frame as JSON text. Replaces up to `changes` values, and may add, remove, repeat or reverse members.
 * Without changes the text is that of `JSON.stringify`.
 */
export function mutatedJson(frame: Fields, random: Random, changes: number): string {
  const places = countPlaces(frame)
  // Place 0 is the whole frame. It is rarely replaced, because the first check refuses most such lines.
  const lowest = random.oneIn(20) ? 0 : 1
  const targets = new Set(Array.from({ length: changes }, () => random.between(lowest, places - 1)))
  let place = 0
  const render = (value: unknown): string => {
    if (targets.has(place++)) return hostileJson(random)
    if (Array.isArray(value)) return `[${value.map(render).join(',')}]`
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
    const members = Object.entries(value).map(([key, child]) => `${JSON.stringify(key)}:${render(child)}`)
    if (changes > 0) changeMembers(members, random)
    return `{${members.join(',')}}`
  }
  return render(frame)
}

function changeMembers(members: string[], random: Random): void {
  if (random.oneIn(6)) members.splice(random.below(members.length + 1), 0, member(random))
  if (random.oneIn(8) && members.length > 0) members.splice(random.below(members.length), 1)
  if (random.oneIn(8) && members.length > 0) {
    const [key = ''] = random.pick(members).split(':')
    members.splice(random.below(members.length + 1), 0, `${key}:${hostileJson(random)}`)
  }
  if (random.oneIn(10)) members.reverse()
}

function member(random: Random): string {
  return `${JSON.stringify(random.pick(KEYS))}:${hostileJson(random)}`
}

function countPlaces(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, child) => sum + countPlaces(child), 1)
}

function nested(random: Random, depth: number): string {
  const [open, close] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
    ['[{"__proto__":', '}]'],
  ] as const)
  const end = random.oneIn(8) ? '' : close.repeat(depth)
  return `${open.repeat(depth)}0${end}`
}
