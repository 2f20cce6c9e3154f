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

test('CA-06 without streaming, only what the executor does is logged', () => {
  const lines: string[] = []
  const log = new LineLog('DockerPythonExecutor', 'script', (line) => void lines.push(line), false)
  log.note('starting')
  log.add('stdout', 'a\n')
  log.end()
  expect(lines).toEqual(['[DockerPythonExecutor] starting'])
})
