import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { sqliteStore } from '../../../src/journal/index.ts'
import { lastLine, makeCli } from '../../support/cli/sandglass.ts'
import { FIRST, hostileRun, SECOND, startRun, storeRun } from '../../support/cli/stored-runs.ts'

const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

describe('a damaged journal', () => {
  test('the run of a killed process is shown up to its last event (OR-06)', async () => {
    const place = storeRun(join(cli.directory, 'killed'), FIRST, hostileRun().slice(0, 1))
    appendFileSync(join(place, `${FIRST}.jsonl`), '{"v":1,"run_id":"2026')
    const { code, stdout } = await cli.run(['show', FIRST, '--journal', place])
    expect([code, stdout.split('\n')[0]]).toEqual([0, `Task ${FIRST}  unfinished`])
    expect(stdout).toContain(
      'No answer: unfinished\n  the journal has no end: the process ended early, or the task is still going\n',
    )
  })

  test('unreadable events are skipped and counted', async () => {
    const place = storeRun(join(cli.directory, 'holes'), FIRST, [startRun('Holes'), ...hostileRun().slice(1)])
    const path = join(place, `${FIRST}.jsonl`)
    const lines = readFileSync(path, 'utf8').split('\n')
    lines[4] = 'no JSON'
    lines[8] = lines[8]?.replace('"stdout":"', '"stdout_":"') ?? ''
    writeFileSync(path, lines.join('\n'))
    const { code, stdout } = await cli.run(['show', FIRST, '--journal', place])
    expect(code).toBe(0)
    expect(stdout).toContain('  damaged   2 events of this journal cannot be read\n')
  })

  test('runs lists damaged and foreign files, and show names the damage of one', async () => {
    const place = storeRun(join(cli.directory, 'damaged'), FIRST, [startRun('Fine')])
    for (const [name, content] of [
      [`${SECOND}.jsonl`, '\u0000\u0001 not a journal'],
      ['notes.jsonl', '{}'],
      ['re\u001B[31mport.txt', 'x'],
    ] as const) {
      writeFileSync(join(place, name), content)
    }
    const [list, shown] = await Promise.all([
      cli.run(['runs', '--journal', place]),
      cli.run(['show', SECOND, '--journal', place]),
    ])
    expect([
      list.code,
      list.stdout
        .split('\n')
        .slice(1, 3)
        .map((line) => line.replaceAll(/ +/g, ' ')),
    ]).toEqual([
      0,
      [
        `${SECOND} 2026-11-22 13:00:00 damaged - - - - -`,
        `${FIRST} 2026-11-22 12:00:00 unfinished plan 0 0 0.0 ms Fine`,
      ],
    ])
    expect(list.stderr).toBe(
      `sandglass: ${place} contains files that are not journals of a task: "notes.jsonl", "re\\u001b[31mport.txt"\n`,
    )
    expect([shown.code, shown.stdout]).toEqual([2, ''])
    expect(shown.stderr).toBe(`sandglass: the task ${SECOND} in ${place} is damaged: its first event cannot be read\n`)
  })

  test('a file that is not SQLite is an error, not a crash', async () => {
    const path = cli.file('no.sqlite', 'this is no database, but long enough to be looked at as one')
    const ended = await cli.run(['runs', '--journal', path, '--json'])
    expect([ended.code, lastLine(ended).code]).toEqual([8, 'journal_unusable'])
  })

  test.each(['runs', 'show'])('%s does not change the database of another program', async (command) => {
    const path = join(cli.directory, `foreign-${command}.db`)
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE users (name TEXT)')
    database.close()
    const before = readFileSync(path)
    const ended = await cli.run([command, ...(command === 'show' ? ['last'] : []), '--journal', path])
    expect(ended).toEqual({
      code: 8,
      stdout: '',
      stderr: `sandglass: the journal ${path} cannot be used: it is a database, but not a journal of Sandglass; use another path\n`,
    })
    expect(readFileSync(path)).toEqual(before)
    expect(readdirSync(cli.directory).filter((name) => name.startsWith(`foreign-${command}.db-`))).toEqual([])
  })

  test('a read-only database can be read', async () => {
    const place = join(cli.directory, 'sealed')
    mkdirSync(place)
    const path = join(place, 'runs.db')
    const store = sqliteStore(path)
    for (const [seq, body] of [startRun('Sealed')].entries()) {
      await store.append({ v: 1, run_id: FIRST, seq, at: '2026-11-22T12:00:00.000Z', ...body })
    }
    await store.close()
    chmodSync(path, 0o444)
    chmodSync(place, 0o555)
    const wrapper = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : []
    const ended = await cli.run(['runs', '--journal', path], { wrapper })
    chmodSync(place, 0o755)
    expect([ended.code, ended.stderr, ended.stdout.includes('Sealed')]).toEqual([0, '', true])
  })

  test.each<[string, string, string]>([
    ['a name that is too long', 'x'.repeat(5000), 'ENAMETOOLONG'],
    ['a link to itself', join(cli.directory, 'loop'), 'ELOOP'],
  ])('%s is wrong usage', async (_, path, reason) => {
    symlinkSync('loop', join(cli.directory, 'loop'))
    const ended = await cli.run(['runs', `--journal=${path}`])
    rmSync(join(cli.directory, 'loop'))
    expect([ended.code, ended.stdout, ended.stderr.length < 400]).toEqual([2, '', true])
    expect(ended.stderr).toContain(`: it cannot be inspected: ${reason}\n`)
  })
})
