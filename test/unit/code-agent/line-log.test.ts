import { expect, test } from 'vitest'
import { LineLog } from '../../../src/code-agent/line-log.ts'

test('CA-06 whole lines are logged with executor, label and stream, and control no terminal', () => {
  const lines: string[] = []
  const log = new LineLog('DockerPythonExecutor', 'script', (line) => void lines.push(line), true)
  log.note('starting')
  log.add('stdout', 'a')
  log.add('stderr', 'w\u001b[2J\r\n')
  log.add('stdout', 'b\nc')
  log.end()
  expect(lines).toEqual([
    '[DockerPythonExecutor] starting',
    String.raw`[DockerPythonExecutor][script][stderr] w\x1b[2J\x0d`,
    '[DockerPythonExecutor][script][stdout] ab',
    '[DockerPythonExecutor][script][stdout] c',
  ])
})

test('CA-06 characters that change the direction of text are logged as their codes', () => {
  const lines: string[] = []
  const log = new LineLog('DockerPythonExecutor', 'script', (line) => void lines.push(line), true)
  const codes = [0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]
  for (const code of codes) log.add('stdout', `a${String.fromCharCode(code)}b\n`)
  log.note('moved \u202e')
  // Text that runs from right to left, and joiners, stay as they are.
  log.add('stderr', '\u05d0\u0627 \u200d\u200b\n')
  expect(lines).toEqual([
    ...codes.map((code) => `[DockerPythonExecutor][script][stdout] a\\u${code.toString(16).padStart(4, '0')}b`),
    String.raw`[DockerPythonExecutor] moved \u202e`,
    '[DockerPythonExecutor][script][stderr] \u05d0\u0627 \u200d\u200b',
  ])
})

test('CA-06 without streaming, only what the executor does is logged', () => {
  const lines: string[] = []
  const log = new LineLog('DockerPythonExecutor', 'script', (line) => void lines.push(line), false)
  log.note('starting')
  log.add('stdout', 'a\n')
  log.end()
  expect(lines).toEqual(['[DockerPythonExecutor] starting'])
})
