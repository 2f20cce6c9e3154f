import { readdirSync, readlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openInfoFile } from '../../../../src/engines/local/info-file.ts'
import { readMark, startCode } from '../../../../src/engines/local/mark.ts'
import { assignToSandboxes, type ProcessLine } from '../../../../src/engines/local/sandbox-processes.ts'
import { scopedDirectory } from '../../../support/engines/local/state-dir.ts'

/** A command line in the form of /proc. */
const commandLine = (...words: string[]): string => words.map((word) => `${word}\0`).join('')

describe('a command line names its sandbox', () => {
  const words = ['python3', '-I', '-S', '-c', startCode('sg-1'), '{"scratch":[]}']

  test('as the launcher and as the harness', () => {
    expect(readMark(commandLine(...words))).toBe('sg-1')
    expect(readMark(commandLine('bwrap', '--args', '3', '--', ...words))).toBe('sg-1')
  })

  test.each([
    ['of something else', ['grep', 'sg-1', '/proc']],
    ['that has the code as another word', ['grep', startCode('sg-1'), '{}']],
    ['that has more behind it', [...words, 'more']],
    ['without a configuration', words.slice(0, -1)],
    ['with something that is no name', ['python3', '-c', startCode('sg-1 ; rm'), '{}']],
    ['of a zombie', []],
  ])('but not one %s', (_, other) => {
    expect(readMark(commandLine(...other))).toBeUndefined()
  })
})

describe('a process belongs to the sandbox', () => {
  const line = (pid: number, parent: number, mark?: string): ProcessLine => ({ pid, parent, mark, start: `${pid}0` })
  const assign = (lines: readonly ProcessLine[]): unknown[] =>
    assignToSandboxes(lines).map(({ pid, sandbox, isMarked }) => [pid, sandbox, isMarked])

  test('that its own command line names, or that of the outermost process above it', () => {
    const host = line(10, 1)
    const launcher = line(20, 10, 'sg-1')
    const inside = [line(30, 20, 'sg-1'), line(31, 30, 'sg-1'), line(40, 31), line(41, 40)]
    expect(assign([host, launcher, ...inside])).toEqual([
      [20, 'sg-1', true],
      [30, 'sg-1', true],
      [31, 'sg-1', true],
      [40, 'sg-1', false],
      [41, 'sg-1', false],
    ])
  })

  test('that its launcher names, whatever a script wrote into its own command line', () => {
    expect(assign([line(20, 1, 'sg-1'), line(30, 20, 'sg-2'), line(40, 30, 'sg-2')])).toEqual([
      [20, 'sg-1', true],
      [30, 'sg-1', false],
      [40, 'sg-1', false],
    ])
  })

  test('even if pids were reused during the reading and parents form a cycle', () => {
    expect(assign([line(20, 30, 'sg-1'), line(30, 20), line(40, 40)])).toEqual([
      [20, 'sg-1', true],
      [30, 'sg-1', false],
    ])
  })
})

test('reads a partly written info of bubblewrap from an unlinked file', () => {
  using directory = scopedDirectory('info')
  const path = join(directory.path, 'info')
  const file = openInfoFile(path)
  expect([readdirSync(directory.path), file.read()]).toEqual([[], ''])
  writeSync(file.writing, '{"child-pid": 1')
  expect(file.read()).toBe('{"child-pid": 1')
  writeSync(file.writing, '}')
  expect(file.read()).toBe('{"child-pid": 1}')
  const isOpen = (): boolean =>
    readdirSync('/proc/self/fd').some((fd) => targetOf(`/proc/self/fd/${fd}`) === `${path} (deleted)`)
  expect(isOpen()).toBe(true)
  file[Symbol.dispose]()
  expect(isOpen()).toBe(false)
})

/** The target of a descriptor; other threads of this process open and close theirs meanwhile. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
