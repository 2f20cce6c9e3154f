import { type Fields, FOREIGN_ID } from './corpus.ts'
import { mutatedBytes } from './mutate-bytes.ts'
import { mutatedJson } from './mutate-json.ts'
import type { Random } from '../../test/support/random.ts'

/** One line without its newline: a frame of a corpus, rarely unchanged, otherwise mutated as JSON, as bytes, or both. */
export function mutatedLine(corpus: readonly Fields[], random: Random): Buffer {
  let frame = random.pick(corpus)
  if (random.oneIn(10)) frame = { ...frame, execution_id: FOREIGN_ID }
  if (random.oneIn(40)) frame = { ...frame, type: random.pick(['unknown', '', 'ready', '__proto__', 'toString']) }
  const asJson = random.below(8)
  const changes = asJson < 3 ? 0 : asJson < 6 ? 1 : random.between(2, 4)
  let line: Buffer = Buffer.from(mutatedJson(frame, random, changes))
  if (changes === 0 || random.oneIn(4)) {
    const times = random.oneIn(4) ? 0 : random.oneIn(3) ? random.between(2, 6) : 1
    for (let time = 0; time < times; time += 1) {
      line = mutatedBytes(line, Buffer.from(JSON.stringify(random.pick(corpus))), random)
    }
  }
  return line
}

/** Several lines, most of them valid, so that the effect of an invalid line on the following ones shows. */
export function mutatedStream(corpus: readonly Fields[], random: Random, most = 12): Buffer {
  const parts: Buffer[] = []
  const count = random.between(1, most)
  for (let line = 0; line < count; line += 1) {
    const sound = !random.oneIn(3)
    parts.push(sound ? Buffer.from(JSON.stringify(random.pick(corpus))) : mutatedLine(corpus, random))
    parts.push(Buffer.from(random.oneIn(30) ? random.pick(['', '\r', '\r\n', '\n\n', '\u2028\n', '\0\n']) : '\n'))
  }
  const bytes = Buffer.concat(parts)
  return random.oneIn(4) ? mutatedBytes(bytes, Buffer.concat(parts.toReversed()), random) : bytes
}
