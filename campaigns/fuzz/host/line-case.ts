import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { type DecodedLine, decodeLine, type HarnessFrame } from '../../../src/protocol/index.ts'
import { HARNESS_CORPUS } from '../corpus.ts'
import type { FuzzCase } from '../fuzz-case.ts'
import { mutatedLine } from '../lines.ts'
import type { Random } from '../../../test/support/random.ts'

const KINDS: readonly DecodedLine['kind'][] = ['frame', 'blank', 'not-json', 'unknown']

/** Fields with values of a script, which must be complete. */
const FREE_FIELDS: ReadonlySet<string> = new Set(['data', 'args'])

/** A line is decoded to a frame with the same content, or refused; decoding does not throw and changes no prototype. */
export function lineCase(random: Random): FuzzCase {
  const line = mutatedLine(HARNESS_CORPUS, random)
  return {
    property: 'a line is decoded or refused, and a frame has the content of its line',
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
  const again = decodeLine(Buffer.from(encodeAgain(frame)))
  ok(again.kind === 'frame', 'an accepted frame is refused when it is encoded again')
  strictEqual(JSON.stringify(again.frame), JSON.stringify(frame))
  // The same text, parsed without the code under test.
  const told = JSON.parse(Buffer.from(line).toString('utf8').trim()) as Record<string, unknown>
  for (const [key, value] of Object.entries(frame)) {
    if (!Object.hasOwn(told, key)) continue
    const want = FREE_FIELDS.has(key) ? told[key] : pruned(told[key], value)
    strictEqual(JSON.stringify(value), JSON.stringify(want), key)
  }
}

/** Encodes a frame, with large floats as floats (docs/protocol.md): as an integer, 1e16 would be refused. */
function encodeAgain(frame: HarnessFrame): string {
  const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }
  return JSON.stringify(frame, (_key, value: unknown) =>
    typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? rawJSON(value.toExponential()) : value,
  )
}

/** Removes the fields that schemas drop: unknown ones in objects whose fields they list. */
function pruned(told: unknown, kept: unknown): unknown {
  if (Array.isArray(told) && Array.isArray(kept)) return told.map((item, at) => pruned(item, kept[at]))
  if (!isObject(told) || !isObject(kept)) return told
  return Object.fromEntries(Object.keys(kept).map((key) => [key, pruned(told[key], kept[key])]))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
