import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { LiveLine } from '../../../src/cli/live-line.ts'
import { Output } from '../../../src/cli/output.ts'
import { styleLeftBy } from '../../../src/cli/terminal-text.ts'

const CONCEALED = '\u001B[8m'
const RESET = '\u001B[0m'

/** Two outputs that write to one screen, or each to a file. */
function outputs(isTerminal: boolean): { stdout: Output; stderr: Output; live: LiveLine; screen: () => string } {
  let screen = ''
  const make = (): Output => {
    const stream = new Writable({
      decodeStrings: false,
      write(text: string, _encoding, done) {
        screen += text
        done()
      },
    })
    const terminal = Object.assign(stream, { isTTY: isTerminal }) as unknown as NodeJS.WriteStream
    return new Output(terminal, new AbortController().signal, () => {})
  }
  const [stdout, stderr] = [make(), make()]
  return { stdout, stderr, live: new LiveLine(stderr, false, () => ''), screen: () => screen }
}

describe('the output of a script on a terminal', () => {
  test('conceals none of our lines and no later text', async () => {
    const { stdout, stderr, live, screen } = outputs(true)
    await live.pass(stdout, `a${CONCEALED}b\n`)
    await live.write(stderr, '[failed] one\n')
    await live.write(stderr, '[failed] two\n')
    await live.pass(stderr, `${CONCEALED}c`)
    await live.end()
    expect(screen()).toBe(`a${CONCEALED}b\n${RESET}[failed] one\n[failed] two\n${CONCEALED}c${RESET}`)
  })

  test('shares no line with ours, on either output', async () => {
    const { stdout, stderr, live, screen } = outputs(true)
    await live.pass(stdout, 'harmless: ')
    await live.write(stderr, '[failed] one\n')
    await live.startLine(stdout)
    await live.pass(stdout, 'result\n')
    expect(screen()).toBe('harmless: \n[failed] one\nresult\n')
  })

  test('keeps its colours, and is unchanged if it ends them itself', async () => {
    const { stdout, stderr, live, screen } = outputs(true)
    await live.pass(stdout, '\u001B[31mred\u001B[0m \u001B]0;title\u0007\n')
    await live.write(stderr, '[info] one\n')
    await live.end()
    expect(screen()).toBe('\u001B[31mred\u001B[0m \\x1b]0;title\\x07\n[info] one\n')
  })

  test.each<[string, boolean | undefined]>([
    ['plain', undefined],
    ['\u001B[2J', undefined],
    ['\u001B[31mred', true],
    ['\u001B[0mx\u001B[0;8m', true],
    ['\u001B[31mred\u001B[m', false],
  ])('%j leaves a style: %s', (text, leaves) => {
    expect(styleLeftBy(text)).toBe(leaves)
  })
})

test('a file gets the unchanged bytes of a script', async () => {
  const { stdout, stderr, live, screen } = outputs(false)
  await live.pass(stdout, `a${CONCEALED}b`)
  await live.write(stderr, '[failed] one\n')
  await live.end()
  expect(screen()).toBe(`a${CONCEALED}b[failed] one\n`)
})
