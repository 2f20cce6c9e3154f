import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { type DecodedLine, decodeLine, type HarnessFrame } from '../../../src/protocol/index.ts'
import { HARNESS_CORPUS } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedLine } from '../lines.ts'
import type { Random } from '../../../test/support/random.ts'

const KINDS: readonly DecodedLine['kind'][] = ['frame', 'blank', 'not-json', 'unknown']

/** Fields that hold what a script chose: nothing of them may be dropped. */
const FREE_FIELDS: ReadonlySet<string> = new Set(['data', 'args'])

/** A line is a frame that says what the line says, or none; reading one throws nothing and changes no prototype. */
export function lineCase(random: Random): FuzzCase {
  const line = mutatedLine(HARNESS_CORPUS, random)
  return {
    property: 'a line is read or refused, and a frame says what its line says',
    pieces: [line],
    check() {
      const decoded = decodeLine(line)
      ok(KINDS.includes(decoded.kind))
      if (decoded.kind === 'frame') checkFrame(decoded.frame, line)
      deepStrictEqual(Object.keys(Object.prototype), [])
    },
  }
}

function checkFrame(frame: HarnessFrame, line: Uint8Array): void {
  const again = decodeLine(Buffer.from(writtenAnew(frame)))
  ok(again.kind === 'frame', 'a frame that was accepted is refused when it is written anew')
  strictEqual(JSON.stringify(again.frame), JSON.stringify(frame))
  // The same text, read without any of the code under test.
  const told = JSON.parse(Buffer.from(line).toString('utf8').trim()) as Record<string, unknown>
  for (const [key, value] of Object.entries(frame)) {
    if (!Object.hasOwn(told, key)) continue
    const want = FREE_FIELDS.has(key) ? told[key] : pruned(told[key], value)
    strictEqual(JSON.stringify(value), JSON.stringify(want), key)
  }
}

/** With large floats as floats (docs/protocol.md): written as an integer, 1e16 would be refused. */
function writtenAnew(frame: HarnessFrame): string {
  const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }
  return JSON.stringify(frame, (_key, value: unknown) =>
    typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? rawJSON(value.toExponential()) : value,
  )
}

/** Without what schemas drop: fields that they do not know, in objects whose fields they list. */
function pruned(told: unknown, kept: unknown): unknown {
  if (Array.isArray(told) && Array.isArray(kept)) return told.map((item, at) => pruned(item, kept[at]))
  if (!isObject(told) || !isObject(kept)) return told
  return Object.fromEntries(Object.keys(kept).map((key) => [key, pruned(told[key], kept[key])]))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
