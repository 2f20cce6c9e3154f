import { execFileSync } from 'node:child_process'
import { beforeAll, describe, expect, test } from 'vitest'
import { writeByPython, type WrittenByPython } from '../../../scripts/docs/python-writers.ts'
import { Redactor } from '../../../src/redaction/index.ts'
import { partsOf, randomSecrets, seedOfRun } from '../../support/random-secrets.ts'
import { measureBest } from '../../support/measure-best.ts'

const MARKER = '[redacted:K]'
const KEY_OF_LINES =
  "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\nAgEAAoIB/AQ+Dx7Ztb'qob\"b'\n-----END KEY-----"

/** The texts of a secret that show a part of it, by the name of the writer. */
function findLeaks(secret: string, texts: Readonly<Record<string, string>>): string[] {
  const redactor = new Redactor({ K: secret })
  const parts = partsOf(secret)
  return Object.entries(texts).flatMap(([name, text]) => {
    const shown = redactor.text(text)
    const left = shown.replaceAll(MARKER, '\0')
    const leaks = !shown.includes(MARKER) || parts.some((part) => left.includes(part))
    return leaks ? [`${name}: ${JSON.stringify(secret)} became ${JSON.stringify(shown)}`] : []
  })
}

describe('a secret in texts of Python (OR-06)', () => {
  const seed = seedOfRun()
  const secrets = [
    ...randomSecrets(25, seed),
    // A key of a service account as in its JSON file, and a value that only looks like an escape.
    JSON.stringify(
      { type: 'service_account', private_key: '-----BEGIN KEY-----\nMIIEvQIBADAN+/x=\n-----END KEY-----\n' },
      null,
      2,
    ),
    'C:\\new\\x41bc%41de&amp;fghij',
  ]
  let answer: WrittenByPython
  let ofPprint: readonly string[]
  beforeAll(() => {
    answer = writeByPython(secrets)
    ofPprint = writeBytesByPprint(KEY_OF_LINES)
  }, 20_000)

  test('is found in each form of the standard library', () => {
    expect(secrets.flatMap((secret, index) => findLeaks(secret, knownOf(answer, index)))).toEqual([])
  })

  test('is found in bytes that pprint writes over several lines, in one text and in a stream', () => {
    const redactor = new Redactor({ K: KEY_OF_LINES })
    for (const text of ofPprint) {
      expect(partsOf(KEY_OF_LINES).filter((part) => redactor.text(text).includes(part.slice(0, 5)))).toEqual([])
      const stream = redactor.stream()
      const told = Array.from(text, (character) => stream.push(character)).join('')
      expect(told + stream.flush()).toBe(redactor.text(text))
    }
  })

  test('is found wherever a stream is cut', () => {
    const secret = secrets[0] ?? ''
    const redactor = new Redactor({ K: secret })
    for (const text of Object.values(knownOf(answer, 0))) {
      const whole = redactor.text(`${text}\n.`)
      for (const size of [1, 7]) {
        const stream = redactor.stream()
        let told = ''
        for (let at = 0; at < text.length; at += size) told += stream.push(text.slice(at, at + size))
        expect(told + stream.push('\n.') + stream.flush()).toBe(whole)
      }
    }
  })
})

/** The texts of `pprint` for the bytes of a secret, in lines of different lengths. */
function writeBytesByPprint(secret: string): string[] {
  const program =
    'import json, pprint, sys; v = json.load(sys.stdin).encode(); ' +
    "json.dump([pprint.pformat(w, width=n) for n in (20, 33, 47, 80) for w in (v, {'k': v}, [bytearray(v)], repr({'k': v}))], sys.stdout)"
  return JSON.parse(execFileSync('python3', ['-c', program], { input: JSON.stringify(secret) }).toString()) as string[]
}

/** The texts of a secret in forms that redaction finds. */
function knownOf({ written, unknown }: WrittenByPython, index: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(written[index] ?? {}).filter(([name]) => !unknown.includes(name)))
}

describe('redaction', () => {
  test('returns an ordinary text unchanged, as the same object', () => {
    const redactor = new Redactor({ K: 'sk-live-"ABC"-12345678', L: 'postgres://u:p%40ss@host/db?a=1&b=2' })
    const data = { rows: [['a "quoted" text\n', 1.5, null], { 'key & more': 'C:\\new 100% <b>' }] }
    expect(redactor.value(data)).toBe(data)
    const text = 'the skeleton lives: 41424344 c2stbGl2 post gres\\n%20&amp;\u00e9😀 p%40 host/db\n'
    expect(redactor.text(text)).toBe(text)
  })

  test('the beginning of a long secret counts as the secret, a shorter one does not', () => {
    const secret = Array.from({ length: 40 }, (_, index) => `w${index}"x`).join('')
    const redactor = new Redactor({ K: secret })
    expect(redactor.text(`invalid literal: ${secret.slice(0, 90)} and on`)).toBe('invalid literal: [redacted:K] and on')
    expect(redactor.text(`invalid literal: ${secret.slice(0, 30)} and on`)).toBe(
      `invalid literal: ${secret.slice(0, 30)} and on`,
    )
  })

  test.each([
    ['backslashes', '\\'],
    ['quotes', '"'],
    ['entities', '&amp;'],
    ['ampersands', '&'],
    ['percent signs', '%25'],
    ['the beginning of the secret', 'aaaa"\\aaaa'],
  ])('a text of %s takes time in proportion to its length', (_, unit) => {
    const redactor = new Redactor({ K: `${'a"\\'.repeat(500)}b`, L: '%25&amp;\\"%25&amp;key' })
    const timeOf = (size: number): number => {
      const text = unit.repeat(Math.ceil(size / unit.length))
      return measureBest(() => {
        const stream = redactor.stream()
        for (let at = 0; at < text.length; at += 4096) stream.push(text.slice(at, at + 4096))
        stream.flush()
      })
    }
    timeOf(4096)
    // Eight times the text; quadratic would be 64 times.
    expect(timeOf(128 * 1024)).toBeLessThan(30 * timeOf(16 * 1024) + 20)
  })
})
