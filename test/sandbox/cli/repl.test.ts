import { afterAll, describe, expect, test } from 'vitest'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { fencesOf } from '../../support/run-example.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const CLI_PAGE = join(import.meta.dirname, '../../../docs/cli.md')
const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

/** The lines that answer these requests, and the exit code. */
function answers(...requests: readonly (object | string)[]): ReturnType<typeof answersOn> {
  return answersOn('local', ...requests)
}

async function answersOn(
  engine: string,
  ...requests: readonly (object | string)[]
): Promise<{ code: number | null; lines: object[] }> {
  const input = requests.map((request) => (typeof request === 'string' ? request : JSON.stringify(request))).join('\n')
  const ended = await cli.run(['repl', '--json', '--engine', engine], { input })
  return { code: ended.code, lines: linesOf(ended) }
}

test('sandglass repl on pyodide keeps variables, and refuses checkpoints', async () => {
  const { lines } = await answersOn(
    'pyodide',
    { id: '1', cell: 'x = [1]\nx' },
    { id: '2', command: 'checkpoint', name: 'one' },
    { id: '3', cell: 'x' },
  )
  expect(lines).toMatchObject([
    { id: '1', value: [1], checkpoint: { grade: 'none' } },
    { id: '2', type: 'error', code: 'checkpoint_unavailable' },
    { id: '3', value: [1], state: 'kept' },
  ])
})

describe.skipIf(skip)('sandglass repl', () => {
  test('--json answers each cell with a line, and survives one that crashes', async () => {
    const { code, lines } = await answers(
      { id: 'a', cell: 'x = [1]\nx' },
      { id: 'b', cell: 'x.append(2)\nimport os; os._exit(1)' },
      { id: 'c', cell: 'while True: pass', timeout_s: 0.3 },
      { id: 'd', cell: 'print("out")\n1 / 0' },
      { id: 'e', cell: 'x' },
      { id: 'f', cell: 'emit_log("half way", "warning")\nemit_intermediate("half", 20)\nemit_result({"a": 41})' },
    )
    expect(code).toBe(0)
    expect(lines).toMatchObject([
      {
        id: 'a',
        number: 1,
        status: 'step-done',
        state: 'kept',
        value: [1],
        has_result: false,
        final_data: null,
        intermediates: [],
        logs: [],
      },
      { id: 'b', number: 2, status: 'crashed', state: 'rolled-back' },
      { id: 'c', number: 3, status: 'timed-out', state: 'rolled-back' },
      {
        id: 'd',
        number: 4,
        status: 'failed',
        state: 'kept',
        stdout: 'out\n',
        error: 'ZeroDivisionError: division by zero',
      },
      { id: 'e', number: 5, state: 'kept', value: [1] },
      {
        id: 'f',
        status: 'completed',
        value: null,
        has_result: true,
        final_data: { a: 41 },
        intermediates: [{ label: 'half', data: 20 }],
        logs: [{ level: 'warning', message: 'half way' }],
      },
    ])
  })

  test('--json keeps, restores and branches the state by name', async () => {
    const { lines } = await answers(
      { id: '1', cell: 'x = [1]' },
      { id: '2', command: 'checkpoint', name: 'one' },
      { id: '3', command: 'branch' },
      { id: '4', cell: 'x.append(2); x', branch: 'b1' },
      { id: '5', cell: 'x = None' },
      { id: '6', command: 'restore', name: 'one' },
      { id: '7', cell: 'x' },
      { id: '8', command: 'variables', branch: 'b1' },
      { id: '9', command: 'drop', name: 'b1' },
      { id: '10', cell: 'x', branch: 'b1' },
      { id: '11', command: 'drop', name: 'one' },
      { id: '12', command: 'restore', name: 'one' },
    )
    expect(lines).toMatchObject([
      { id: '1' },
      { id: '2', command: 'checkpoint', name: 'one', checkpoint: { grade: 'whole', lacks: [] } },
      { id: '3', command: 'branch', name: 'b1' },
      { id: '4', value: [1, 2] },
      { id: '5' },
      { id: '6', command: 'restore', name: 'one' },
      { id: '7', value: [1] },
      { id: '8', variables: [{ name: 'x', type: 'list', shape: [2] }] },
      { id: '9', command: 'drop', name: 'b1' },
      { id: '10', type: 'error', code: 'invalid_request', error: expect.stringContaining('no branch "b1"') as string },
      { id: '11', command: 'drop', name: 'one' },
      { id: '12', type: 'error', error: expect.stringContaining('no checkpoint "one"') as string },
    ])
  })

  test('--json answers the requests of docs/cli.md as the page says', async () => {
    const [, section = ''] = /^## `repl`$(.*?)^## /ms.exec(readFileSync(CLI_PAGE, 'utf8')) ?? []
    const [requests = '', wanted = ''] = fencesOf(section).flatMap(({ language, text }) =>
      language === 'json' ? text : [],
    )
    const { stdout } = await cli.run(['repl', '--json', '--engine', 'local'], { input: requests })
    const withoutTime = (lines: string): string => lines.replaceAll(/"duration_ms":[\d.]+/g, '"duration_ms":0')
    expect(withoutTime(stdout)).toBe(withoutTime(wanted))
    expect(wanted).not.toBe('')
  })

  test('--json names pictures of --save that were not saved, and warnings', async () => {
    const saved = join(cli.directory, 'saved-lines')
    const cell = `display({"image/png": "${PNG}"}, raw=True)`
    const requests = [
      { id: '1', command: 'branch', name: 'a/b' },
      { id: '2', cell, branch: 'a/b' },
      { id: '3', cell },
      { id: '4', cell: 'import os, threading; threading.Timer(1.0, os._exit, [1]).start()' },
      { id: '5', cell: 'import time; time.sleep(30)' },
    ]
    const input = requests.map((request) => JSON.stringify(request)).join('\n')
    const run = async (): Promise<object[]> =>
      linesOf(await cli.run(['repl', '--json', '--engine', 'local', '--save', saved], { input }))
    expect((await run()).slice(1)).toMatchObject([
      { id: '2', warnings: [] },
      { id: '3', warnings: [] },
      { id: '4' },
      { id: '5', state: 'rolled-back' },
    ])
    expect(readdirSync(saved).toSorted()).toEqual(['a_b-cell-1-display-1.png', 'cell-1-display-1.png'])
    expect((await run())[2]).toMatchObject({ warnings: [{ code: 'not_saved' }] })
  })

  test('a request that cannot be served is answered, and the next one is served', async () => {
    const { code, lines } = await answers(
      'no JSON',
      '[]',
      { id: 1, cell: '1' },
      { id: 'a', celll: '1' },
      { id: 'b' },
      { id: 'c', cell: 1 },
      { id: 'd', cell: '1', on_error: 'ask' },
      { id: 'e', command: 'restore' },
      { id: 'f', command: 'forget' },
      { id: 'g', cell: '1', name: 'x' },
      { id: 'h', command: 'branch', name: '' },
      { id: 'i', command: 'checkpoint', name: '' },
      { id: 'j', cell: '1', branch: '' },
      { id: 'k', cell: '1' },
    )
    expect(code).toBe(0)
    expect(lines.slice(0, -1)).toMatchObject([
      { id: null, error: expect.stringContaining('the line is not JSON') as string },
      { id: null, error: 'the line is not a JSON object' },
      { id: null, error: 'the line has no "id", a string' },
      { id: 'a', error: expect.stringContaining('Did you mean "cell"?') as string },
      { id: 'b', error: 'the line needs "cell" or "command", and not both' },
      { id: 'c', error: 'cell: it is not a string' },
      { id: 'd', error: 'on_error: write keep or rollback' },
      { id: 'e', error: 'restore needs "name"' },
      { id: 'f', error: 'command: write checkpoint, restore, branch, drop, variables' },
      { id: 'g', error: 'name: a line with "cell" has no such key' },
      { id: 'h', error: 'name: it is empty' },
      { id: 'i', error: 'name: it is empty' },
      { id: 'j', error: 'branch: it is empty' },
    ])
    expect(lines.at(-1)).toMatchObject({ id: 'k', value: 1 })
  })

  test('without a terminal it asks for --json', async () => {
    const ended = await cli.run(['repl', '--engine', 'local'])
    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toContain('repl needs a terminal; programs drive it with --json')
  })
})
