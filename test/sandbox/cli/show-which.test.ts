import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findRun } from '../../../src/cli/stored-run.ts'
import { lastLine, makeCli } from '../../support/cli/sandglass.ts'
import { FIRST, SECOND, startRun, storeRun } from '../../support/cli/stored-runs.ts'

const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const ENV = { XDG_STATE_HOME: join(cli.directory, 'kept') }

describe('the selection of a run', () => {
  const place = storeRun(join(cli.directory, 'two'), FIRST, [startRun('One')])
  storeRun(place, SECOND, [startRun('Two')])
  mkdirSync(join(cli.directory, 'none'))

  test.concurrent.each<[string[], string]>([
    [['show', 'last', '--journal', place], 'task      Two'],
    [['show', '20261122T12', '--journal', place], 'task      One'],
    [['show', FIRST, '--journal', place], 'task      One'],
    [['runs', '--journal', join(cli.directory, 'none')], `no tasks in ${join(cli.directory, 'none')} yet`],
  ])('sandglass %j', async (args, expected) => {
    const { code, stdout } = await cli.run(args)
    expect([code, stdout.includes(expected)]).toEqual([0, true])
  })

  test.concurrent.each<[string[], string]>([
    [['show'], 'show needs a RUN: an id, the beginning of one, or last; sandglass runs lists them'],
    [['show', FIRST, SECOND], `show takes one RUN, but also got "${SECOND}"`],
    [['show', 'last', '--out', 'x'], '--out FILE is where --html writes its page: add --html'],
    [['show', 'last', '--html', '--out', '/nonexistent/x', '--journal', place], '--out /nonexistent/x: ENOENT'],
    [['show', 'last', '--journal', '/nonexistent'], '--journal /nonexistent: there is no such directory or database'],
    [['show', 'last', '--journal', join(cli.directory, 'none')], 'there are no tasks in '],
    [['show', '2026', '--journal', place], `"2026" is the beginning of 2 tasks: ${SECOND}, ${FIRST}; write more of it`],
    [
      ['show', `${FIRST.slice(0, -1)}b`, '--journal', place],
      `no task "${FIRST.slice(0, -1)}b" in ${place}. Did you mean ${FIRST}?; sandglass runs --journal ${place} lists them`,
    ],
    [['show', 'zzz', '--journal', place], `no task "zzz" in ${place}. The newest is ${SECOND}; sandglass runs`],
    [['runs', '--limit', '0'], '--limit: "0" is not a whole number from 1 to 100000'],
    [['runs', 'x'], 'runs takes no "x"'],
  ])('sandglass %j is wrong usage', async (args, message) => {
    const ended = await cli.run(args, { env: ENV })
    expect([ended.code, ended.stdout]).toEqual([2, ''])
    expect(ended.stderr).toContain(`sandglass: ${message}`)
  })

  test('only its owner can read the page that --out writes', async () => {
    const page = join(cli.directory, 'own.html')
    const ended = await cli.run(['show', 'last', '--html', '--out', page, '--journal', place])
    expect([ended.code, statSync(page).mode & 0o777]).toEqual([0, 0o600])
  })

  test('--json and --html are two forms of one record', async () => {
    const ended = await cli.run(['show', 'last', '--json', '--html'])
    const message = '--json and --html cannot be used together'
    expect([ended.code, ended.stderr, lastLine(ended).error]).toEqual([2, `sandglass: ${message}\n`, message])
  })

  test('runs reports that there are no tasks yet, and creates no file', async () => {
    const ended = await cli.run(['runs'], { env: { XDG_STATE_HOME: join(cli.directory, 'never') } })
    expect(ended).toEqual({
      code: 0,
      stdout: `no tasks in ${join(cli.directory, 'never/sandglass/runs')} yet\n`,
      stderr: '',
    })
  })

  test('an empty id matches no run', () => {
    const runs = [{ runId: FIRST, startedAt: '' }]
    expect(() => findRun('', runs, { path: 'p', flag: '' })).toThrow('no task ""')
  })
})
