import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { decodeLine, hostFrames, MAX_DEPTH } from '../../../src/protocol/index.ts'
import { CHILD_CORPUS, HOST_CORPUS, OWN_ID } from '../corpus.ts'
import type { CaseMaker, FuzzCase } from '../fuzz-case.ts'
import { Hang } from '../hang.ts'
import { mutatedStream } from '../lines.ts'
import { cut } from '../mutate-bytes.ts'
import { naiveJson, splitLines } from '../naive-lines.ts'
import type { Random } from '../../../test/support/random.ts'
import type { Peer, Played } from './peer.ts'

/** The message of the broker for an invalid request; it must be the same as in harness/sandglass_harness/broker/broker.py. */
const REFUSAL = /^the host sent an invalid request: [\w ]+$/
const SECRET = 'value-of-key'
const MAX_ID = 256
/** The maximum number of pieces: the broker handles each in one turn of its loop. */
const MAX_PIECES = 300

/** Makes cases for the harness, distributed over processes with the broker's code. */
export function brokerCases(peers: readonly Peer[]): CaseMaker {
  let turn = 0
  return (random) => {
    const peer = peers[turn++ % peers.length] as Peer
    const drawn = random.below(20)
    if (drawn < 10) return hostLinesCase(peer, random)
    if (drawn < 18) return childFramesCase(peer, random)
    return linesCase(peer, random)
  }
}

/** Requests are served, or refused in one line; the host gets only frames of runs that it requested. */
function hostLinesCase(peer: Peer, random: Random): FuzzCase {
  const bytes = mutatedStream(HOST_CORPUS, random, 6)
  const child = mutatedStream(CHILD_CORPUS, random, 6)
  const pieces = cut(bytes, random, MAX_PIECES)
  const checker = random.oneIn(8)
  const dead = !random.oneIn(3)
  return {
    property: 'requests are served or refused in one line, and the host gets only frames of its runs',
    pieces,
    async check() {
      const played = await peer.play({ play: 'broker', pieces, child, checker, dead })
      const lines = splitLines(Buffer.concat(pieces)).slice(0, -1)
      if (played.outcome === 'refused') {
        ok(REFUSAL.test(played.message), `unexpected message of a refusal: ${played.message}`)
        ok(!played.message.includes(SECRET), 'a refusal contains a secret')
        ok(!lines.every(isRequest), `requests that match the schema were refused: ${played.message}`)
      }
      checkSent(played, idsIn(lines))
    },
  }
}

/** Bytes of a script's process become frames of its own run, and of the types that a script may send. */
function childFramesCase(peer: Peer, random: Random): FuzzCase {
  const pieces = cut(mutatedStream(CHILD_CORPUS, random, 12), random)
  const request = {
    ...(random.oneIn(2) ? { tools: [{}] } : {}),
    ...(random.oneIn(3) ? { check: { mode: 'plan' } } : {}),
  }
  const play = { play: 'child', pieces, request, max_output: random.pick([1, 200, 5000, 1 << 20]) } as const
  return {
    property: "a script's frames go on as frames of its own run alone, within its limit",
    pieces,
    check: async () => checkSent(await peer.play(play), new Set([OWN_ID])),
  }
}

/** The harness's line buffer splits at newlines, wherever the bytes are cut. */
function linesCase(peer: Peer, random: Random): FuzzCase {
  const bytes = mutatedStream(HOST_CORPUS, random)
  const pieces = cut(bytes, random)
  return {
    property: "the harness's lines do not depend on where the bytes are cut",
    pieces,
    async check() {
      const { outcome, message, sent } = await peer.play({ play: 'lines', pieces })
      if (outcome === 'hang') throw new Hang(message)
      strictEqual(outcome, 'ended', message)
      ok(sent.equals(bytes.subarray(0, bytes.lastIndexOf('\n') + 1)), 'the lines differ from the input')
    },
  }
}

function checkSent({ outcome, message, sent }: Played, ids: ReadonlySet<string>): void {
  if (outcome === 'hang') throw new Hang(message)
  ok(outcome !== 'crash', message)
  const lines = splitLines(sent)
  deepStrictEqual(lines.pop()?.length, 0, 'the last line for the host lacks its newline')
  for (const line of lines) {
    const decoded = decodeLine(line)
    ok(decoded.kind === 'frame', `the host would refuse what the broker sends: ${line.subarray(0, 400).toString()}`)
    const { frame } = decoded
    if ('execution_id' in frame)
      ok(ids.has(frame.execution_id), `a frame of the run ${frame.execution_id}, which was not requested`)
  }
}

/** True for a frame that matches the host's schema, or that a harness ignores. */
function isRequest(line: Buffer): boolean {
  const text = line.toString('latin1')
  if (/^[ \t\r]*$/.test(text)) return true
  const value = naiveJson(line)
  if (parsesDifferently(line) || typeof value !== 'object' || value === null) return false
  const { type } = value as { readonly type?: unknown }
  if (typeof type !== 'string' || !Object.hasOwn(value, 'type')) return false
  const schema = Object.entries(hostFrames).find(([name]) => name === type)?.[1]
  return schema === undefined || (schema.safeParse(value).success && !hidesSecret(value))
}

/** The schema of a record skips the key `__proto__`; the harness checks it like any other key. */
function hidesSecret({ secrets }: { readonly secrets?: unknown }): boolean {
  if (typeof secrets !== 'object' || secrets === null) return false
  const hidden = Object.getOwnPropertyDescriptor(secrets, '__proto__')
  return hidden !== undefined && typeof hidden.value !== 'string'
}

/** True for lines that Python and JavaScript parse differently: invalid UTF-8, Unicode white space, whole numbers as floats, depth. */
function parsesDifferently(line: Buffer): boolean {
  const text = line.toString('utf8')
  const hasOtherSpace = text.trim() !== text.replace(/^[ \t\r]+/, '').replace(/[ \t\r]+$/, '')
  return text.includes('\uFFFD') || hasOtherSpace || /\d[.eE]/.test(text) || depthOf(text) > MAX_DEPTH
}

/** The depth of JSON text. Counts brackets, because a parsed value lacks the first of two members with the same key. */
function depthOf(text: string): number {
  let [depth, max] = [0, 0]
  for (const bracket of text.replace(/"(?:[^"\\]|\\.)*"/g, '').replace(/[^[\]{}]/g, '')) {
    depth += bracket === '[' || bracket === '{' ? 1 : -1
    max = Math.max(max, depth)
  }
  return max
}

function idsIn(lines: readonly Buffer[]): Set<string> {
  const ids = lines.map(
    (line) => (naiveJson(line) as { readonly execution_id?: unknown } | undefined | null)?.execution_id,
  )
  return new Set(ids.filter((id) => typeof id === 'string' && id.length <= MAX_ID) as string[])
}
