const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
/** Characters that a writer escapes, and texts that look escaped. */
const SPECIAL = [
  ...Array.from('"\'\\\n\t %&<>+/-_=;${}()[]`#:@,.~!*?|^'),
  '\r\n',
  ...Array.from('\u007F\u001B\u0085\u00A0\u00AD\u200B\u2028\uE000éß日😀'),
  "''",
  '""',
  ...String.raw`\\ \n \x41 %41 %25 &amp; &lt n x u 25`.split(' '),
]

/** A seed for random secrets that differs from run to run, and is printed: SANDGLASS_TEST_SEED repeats one. */
export function seedOfRun(): number {
  const seed = Number(process.env['SANDGLASS_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`random secrets of seed ${seed}`)
  return seed
}

/** Secrets of letters, digits and everything that writers escape. The same seed gives the same secrets. */
export function randomSecrets(count: number, seed: number): string[] {
  let state = seed
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
  const pick = (list: string | readonly string[]): string => list[below(list.length)] ?? ''
  const pickSome = (least: number, range: number, list: string | readonly string[]): string =>
    Array.from({ length: least + below(range) }, () => pick(list)).join('')
  return Array.from({ length: count }, () =>
    // Letters at both ends, because a blank there may be stripped.
    Array.from(
      { length: 2 + below(7) },
      () => pickSome(5, 6, LETTERS) + pickSome(0, 4, SPECIAL) + pickSome(1, 3, LETTERS),
    ).join(''),
  )
}

/** The parts of a secret that no writer changes, if they are long enough to recognize it. */
export function partsOf(secret: string): string[] {
  return secret.match(/[A-Za-z0-9]{5,}/g) ?? []
}
