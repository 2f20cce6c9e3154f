import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { jsonlStore, type JournalStore, memoryStore, newRunId, recordOf, sqliteStore } from '../../src/journal/index.ts'
import { eventsOf, runEnded, runIdAt, runStarted, scriptGenerated, wholeRun } from './sample-events.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandglass-journal-'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const MAKERS: Readonly<Record<string, () => JournalStore>> = {
  'in memory': () => memoryStore(),
  'in a directory': () => jsonlStore(join(directory, 'deep', 'er')),
  'in SQLite': () => sqliteStore(join(directory, 'deep', 'runs.db')),
  'in SQLite in memory': () => sqliteStore(':memory:'),
}

describe.each(Object.entries(MAKERS))('a store %s (OR-06)', (_, make) => {
  let store: JournalStore
  beforeEach(() => {
    store = make()
  })
  afterEach(() => store.close())

  test('gives the events of a run back in their order', async () => {
    const events = wholeRun(runIdAt(1))
    for (const event of events) await store.append(event)
    expect(await store.read(runIdAt(1))).toEqual(events)
  })

  test('keeps two runs apart that are written at the same time, and lists the newest first', async () => {
    const [older, newer] = [wholeRun(runIdAt(1)), wholeRun(runIdAt(2))]
    for (const [index, event] of newer.entries()) {
      await store.append(event)
      const other = older[index]
      if (other !== undefined) await store.append(other)
    }
    expect(await store.read(runIdAt(1))).toEqual(older)
    expect(await store.read(runIdAt(2))).toEqual(newer)
    expect(await store.list()).toEqual([
      { runId: runIdAt(2), startedAt: '2026-01-02T03:04:02.000Z' },
      { runId: runIdAt(1), startedAt: '2026-01-02T03:04:01.000Z' },
    ])
  })

  test('lists as many as are asked for', async () => {
    for (const second of [1, 2, 3]) for (const event of wholeRun(runIdAt(second))) await store.append(event)
    const listed = async (limit: number | undefined): Promise<string[]> =>
      (await store.list({ limit })).map(({ runId }) => runId)
    expect(await listed(2)).toEqual([runIdAt(3), runIdAt(2)])
    expect(await listed(0)).toEqual([])
    expect(await listed(99)).toEqual([runIdAt(3), runIdAt(2), runIdAt(1)])
    expect(await listed(undefined)).toEqual([runIdAt(3), runIdAt(2), runIdAt(1)])
    for (const wrong of [-1, 1.5, Number.NaN]) await expect(store.list({ limit: wrong })).rejects.toThrow(TypeError)
  })

  test('removes a run and leaves the others', async () => {
    for (const second of [1, 2]) for (const event of wholeRun(runIdAt(second))) await store.append(event)
    await store.remove(runIdAt(1))
    await store.remove(runIdAt(1))
    expect(await store.read(runIdAt(1))).toEqual([])
    expect((await store.list()).map(({ runId }) => runId)).toEqual([runIdAt(2)])
  })

  test('removes a run that is being written; what is written then begins anew', async () => {
    const [first, second] = wholeRun(runIdAt(1))
    if (first === undefined || second === undefined) throw new Error('a run has events')
    await store.append(first)
    await store.remove(runIdAt(1))
    await store.append(second)
    expect(await store.read(runIdAt(1))).toEqual([second])
  })

  test('has no events of a run that is not there', async () => {
    expect(await store.read(newRunId())).toEqual([])
    expect(await store.list()).toEqual([])
  })

  test('takes any text', async () => {
    const odd = '\u2028\n\r\0"\\ \uD83D é😀 </script>'
    const events = eventsOf(runIdAt(1), [runStarted({ task: odd }), runEnded({ final_data: { [odd]: [odd] } })])
    for (const event of events) await store.append(event)
    expect(await store.read(runIdAt(1))).toEqual(events)
  })

  test.each(['../../x', '/etc/passwd', '', '.', 'a\0b', runIdAt(1) + '/../x', `${runIdAt(1)}\n`, 'x'.repeat(5000)])(
    'refuses %j as the id of a run',
    async (hostile) => {
      const [event] = eventsOf(hostile, [runStarted()])
      if (event === undefined) throw new Error('there is one')
      await expect((async () => store.append(event))()).rejects.toThrow(/^runId: .{1,90} is no id of a run$/s)
      await expect(store.read(hostile)).rejects.toThrow(TypeError)
      await expect(store.remove(hostile)).rejects.toThrow(TypeError)
    },
  )

  test('is closed as often as one likes', async () => {
    for (const event of wholeRun(runIdAt(1)).slice(0, 2)) await store.append(event)
    await store.close()
    await expect(store.close()).resolves.toBe(undefined)
  })
})

describe('a store in memory', () => {
  test('forgets the runs that began first', async () => {
    const store = memoryStore({ maxRuns: 2 })
    for (const second of [1, 2, 3]) for (const event of wholeRun(runIdAt(second))) await store.append(event)
    expect((await store.list()).map(({ runId }) => runId)).toEqual([runIdAt(3), runIdAt(2)])
    expect(await store.read(runIdAt(1))).toEqual([])
    expect(() => memoryStore({ maxRuns: 0 })).toThrow('maxRuns: must be a whole number of at least 1')
  })
})

describe('a store in a directory', () => {
  const fileOf = (second: number): string => join(directory, `${runIdAt(second)}.jsonl`)

  test('leaves out what is no event: a last line that was cut, and garbage', async () => {
    const store = jsonlStore(directory)
    const events = wholeRun(runIdAt(1)).slice(0, 3)
    for (const event of events) await store.append(event)
    await store.close()
    const later = { v: 1, run_id: runIdAt(1), seq: 9, at: '2027-01-01T00:00:00.000Z', type: 'from_the_future' }
    for (const line of ['garbage', '5', 'null', '[]', '{}', '{"v":2}', '\0\0\0', JSON.stringify(later)]) {
      await appendFile(fileOf(1), `${line}\n`)
    }
    await appendFile(fileOf(1), Buffer.from([0xff, 0xfe, 0x0a]))
    await appendFile(fileOf(1), JSON.stringify(wholeRun(runIdAt(1))[3]).slice(0, 60))
    expect(await store.read(runIdAt(1))).toEqual(events)
    expect(recordOf(await store.read(runIdAt(1))).status).toBe('unfinished')
  })

  test('lists no files that are no journals', async () => {
    await writeFile(join(directory, 'notes.jsonl'), '')
    await writeFile(join(directory, `${runIdAt(1)}.txt`), '')
    await writeFile(fileOf(2), '')
    expect((await jsonlStore(directory).list()).map(({ runId }) => runId)).toEqual([runIdAt(2)])
  })

  test('keeps files open for few runs, and writes each event at once', async () => {
    const store = jsonlStore(directory)
    const ids = Array.from({ length: 100 }, (_, index) => runIdAt(1, index.toString(16).padStart(8, '0')))
    for (let seq = 0; seq < 3; seq += 1) {
      for (const runId of ids) {
        const event = wholeRun(runId)[seq]
        if (event !== undefined) await store.append(event)
      }
    }
    for (const runId of ids) expect(await store.read(runId)).toEqual(wholeRun(runId).slice(0, 3))
    await store.close()
  })

  test('is for its owner alone', async () => {
    const store = jsonlStore(join(directory, 'own'))
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    expect((await stat(join(directory, 'own'))).mode & 0o777).toBe(0o700)
    expect((await stat(join(directory, 'own', `${runIdAt(1)}.jsonl`))).mode & 0o777).toBe(0o600)
  })

  test('where none can be, is unusable', async () => {
    const file = join(directory, 'file')
    await writeFile(file, '')
    expect(() => jsonlStore(join(file, 'below'))).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    const store = jsonlStore(join(directory, 'gone'))
    await rm(join(directory, 'gone'), { recursive: true })
    const [event] = wholeRun(runIdAt(1))
    if (event === undefined) throw new Error('there is one')
    expect(() => store.append(event)).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    await expect(store.list()).rejects.toMatchObject({ code: 'journal_unusable' })
  })
})

describe('a store that is opened for reading (OR-06)', () => {
  test.each([
    ['jsonl', jsonlStore],
    ['sqlite', sqliteStore],
  ])('in %s has what was written, makes nothing and takes nothing', async (_, open) => {
    const place = join(directory, 'place')
    const writing = open(place)
    for (const event of wholeRun(runIdAt(1))) await writing.append(event)
    const reading = open(place, { readOnly: true })
    expect(await reading.read(runIdAt(1))).toEqual(wholeRun(runIdAt(1)))
    for (const event of wholeRun(runIdAt(2))) await writing.append(event)
    expect((await reading.list()).map(({ runId }) => runId)).toEqual([runIdAt(2), runIdAt(1)])
    await writing.close()
    const before = await readdir(directory, { recursive: true })
    expect(await reading.read(runIdAt(2))).toEqual(wholeRun(runIdAt(2)))
    const [event] = wholeRun(runIdAt(3))
    if (event === undefined) throw new Error('there is one')
    const refused = expect.objectContaining({
      code: 'journal_unusable',
      message: `the journal ${place} cannot be used: it was opened for reading`,
    }) as unknown
    expect(() => reading.append(event)).toThrow(refused)
    await expect(reading.remove(runIdAt(1))).rejects.toEqual(refused)
    await reading.close()
    expect(await readdir(directory, { recursive: true })).toEqual(before)
  })

  test.each([
    ['jsonl', jsonlStore],
    ['sqlite', sqliteStore],
  ])('in %s does not make what is not there', async (_, open) => {
    const store = open(join(directory, 'nowhere'), { readOnly: true })
    await expect(store.list()).rejects.toMatchObject({ code: 'journal_unusable' })
    expect(await readdir(directory)).toEqual([])
  })
})

describe('what no journal can be made of', () => {
  const reasonOf = (act: () => unknown): string => {
    try {
      act()
    } catch (error) {
      if (error instanceof Error) return error.message
    }
    throw new Error('it threw nothing')
  }

  test('is named with its reason, in few words', async () => {
    const file = join(directory, 'file')
    await writeFile(file, '')
    const long = join(directory, 'x'.repeat(5000))
    expect([
      reasonOf(() => jsonlStore(join(file, 'below'))),
      reasonOf(() => sqliteStore(join(file, 'below', 'runs.db'))),
      reasonOf(() => jsonlStore('/proc')),
      reasonOf(() => jsonlStore(long)).replaceAll(/x{50,}/g, 'x…'),
    ]).toEqual([
      `the journal ${file}/below cannot be used: ${file} is a file, no directory`,
      `the journal ${file}/below/runs.db cannot be used: ${file} is a file, no directory`,
      'the journal /proc cannot be used: ENOENT (open)',
      `the journal ${directory}/x…… cannot be used: ${directory}/x…… cannot be looked at: ENAMETOOLONG`,
    ])
  })

  test.each(['jsonlStore', 'sqliteStore'])(
    'procfs is no place for %s, which is told at once',
    async (store) => {
      const journal = JSON.stringify(fileURLToPath(new URL('../../src/journal/index.ts', import.meta.url)))
      const program = `import { ${store} } from ${journal}
try { ${store}('/proc/1/foo/runs') } catch (error) { console.log(error.message) }`
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
        timeout: 20_000,
        killSignal: 'SIGKILL',
      })
      let said = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text
      })
      await once(child, 'close')
      expect(said).toBe('the journal /proc/1/foo/runs cannot be used: /proc/1/foo cannot be made: ENOENT\n')
    },
    30_000,
  )
})

describe('a store in SQLite', () => {
  test.each([
    ['of something else', 'CREATE TABLE users (name TEXT); INSERT INTO users VALUES (1)'],
    ['with events of something else', 'CREATE TABLE events (id INTEGER, body TEXT)'],
  ])('refuses a database %s, and leaves it as it is', async (_, sql) => {
    const path = join(directory, 'foreign.db')
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(path)
    database.exec(sql)
    database.close()
    const before = await readFile(path)
    const refused = expect.objectContaining({
      code: 'journal_unusable',
      message: `the journal ${path} cannot be used: it is no journal of Sandglass`,
    }) as unknown
    expect(() => sqliteStore(path)).toThrow(refused)
    await expect(sqliteStore(path, { readOnly: true }).list()).rejects.toEqual(refused)
    expect([await readFile(path), await readdir(directory)]).toEqual([before, ['foreign.db']])
  })

  test('takes an empty file', async () => {
    const path = join(directory, 'empty.db')
    await writeFile(path, '')
    const store = sqliteStore(path)
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    expect(await store.list()).toHaveLength(1)
    await store.close()
  })

  test('is for its owner alone', async () => {
    const path = join(directory, 'own', 'runs.db')
    const store = sqliteStore(path)
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    for (const end of ['', '-wal', '-shm']) expect((await stat(`${path}${end}`)).mode & 0o777).toBe(0o600)
    await store.close()
  })

  test('that is no database, or that cannot be made, is unusable', async () => {
    const path = join(directory, 'file')
    await writeFile(path, 'this is no database, and it is long enough to be seen as none'.repeat(100))
    for (const wrong of [path, join(path, 'below')]) {
      expect(() => sqliteStore(wrong)).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    }
    expect(await readFile(path, 'utf8')).toContain('this is no database')
  })

  test('that is closed, or has an event twice, is unusable', async () => {
    const store = sqliteStore(join(directory, 'runs.db'))
    const [event] = wholeRun(runIdAt(1))
    if (event === undefined) throw new Error('there is one')
    await store.append(event)
    expect(() => store.append(event)).toThrow(expect.objectContaining({ code: 'journal_unusable' }))
    await store.close()
    await expect(store.read(runIdAt(1))).rejects.toMatchObject({ code: 'journal_unusable' })
  })

  test('leaves out a row that is no event', async () => {
    const path = join(directory, 'runs.db')
    const store = sqliteStore(path)
    for (const event of wholeRun(runIdAt(1))) await store.append(event)
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(path)
    database.exec("UPDATE events SET body = '{' WHERE seq = 4")
    database.close()
    expect(await store.read(runIdAt(1))).toEqual(wholeRun(runIdAt(1)).slice(0, 4))
    await store.close()
  })
})

const WRITER = fileURLToPath(new URL('writer.main.ts', import.meta.url))
const RUNNING: ChildProcess[] = []

/** A process that writes a run into a store once it is told to. */
class Writer {
  readonly #child: ChildProcess
  #said = ''

  constructor(...args: readonly string[]) {
    this.#child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', WRITER, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    RUNNING.push(this.#child)
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.#said += chunk.toString()
    })
  }

  async said(word: string): Promise<void> {
    while (!this.#said.includes(word)) {
      if (this.#child.exitCode !== null) throw new Error(`the writer ended with ${this.#child.exitCode}`)
      await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), once(this.#child, 'exit')])
    }
  }

  begin(): void {
    this.#child.stdin?.write('go\n')
  }

  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  async end(): Promise<number | null> {
    if (this.#child.exitCode === null) await once(this.#child, 'exit')
    return this.#child.exitCode
  }
}

afterEach(() => {
  for (const child of RUNNING.splice(0)) if (child.exitCode === null) child.kill('SIGKILL')
})

describe('a process that is killed in mid-run (OR-06)', () => {
  test.each([
    ['jsonl', jsonlStore],
    ['sqlite', sqliteStore],
  ])('leaves a journal in %s that is readable, and is told to be unfinished', async (kind, open) => {
    const place = join(directory, 'place')
    const writer = new Writer(kind, place, runIdAt(1), '0')
    await writer.said('ready')
    writer.begin()
    await writer.said('written')
    await writer.kill()
    const store = open(place)
    const events = await store.read(runIdAt(1))
    expect(events.length).toBeGreaterThanOrEqual(6)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index))
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['run_started', 'script_generated'])
    const record = recordOf(events)
    expect(record).toMatchObject({
      runId: runIdAt(1),
      status: 'unfinished',
      success: false,
      error: 'the journal has no end: the process ended first, or the run goes on',
    })
    expect(await store.list()).toMatchObject([{ runId: runIdAt(1) }])
    for (const event of wholeRun(runIdAt(2))) await store.append(event)
    expect(recordOf(await store.read(runIdAt(2))).status).toBe('completed')
    await store.close()
  })
})

test('two processes open and write one SQLite file at the same time (OR-06)', async () => {
  const path = join(directory, 'runs.db')
  const writers = [1, 2].map((second) => new Writer('sqlite', path, runIdAt(second), '500'))
  await Promise.all(writers.map((writer) => writer.said('ready')))
  for (const writer of writers) writer.begin()
  expect(await Promise.all(writers.map((writer) => writer.end()))).toEqual([0, 0])
  const store = sqliteStore(path)
  for (const second of [1, 2]) {
    const bodies = [runStarted(), ...Array.from({ length: 500 }, () => scriptGenerated()), runEnded()]
    expect(await store.read(runIdAt(second))).toEqual(eventsOf(runIdAt(second), bodies))
  }
  await store.close()
})
