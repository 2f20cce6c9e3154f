import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { storeInDirectory, storeInMemory, type Store } from '../../../src/artifacts/index.ts'
import { SandglassError } from '../../../src/errors/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import type { Workspace } from '../../../src/options/index.ts'
import { sharedCache } from '../../support/engines/pyodide/shared-cache.ts'
import { allProcesses, commandLineOf } from '../../support/processes.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const HOST = fileURLToPath(new URL('../../support/persisting-workspace.main.ts', import.meta.url))
const { skip } = await requireLocalEngine()

describe.skipIf(skip)('persisted workspaces', () => {
  let sg: Sandglass
  beforeAll(async () => {
    sg = await createSandglass({ engine: 'local', poolSize: 0 })
  }, 60_000)
  afterAll(() => sg.close())

  test('files, links, directories and modes come back; what cannot is named; what was deleted stays away', async () => {
    const store = storeInMemory()
    const first = await sg.workspace({ persist: 'tree', store })
    await sh(
      first,
      'mkdir -p d/e none; echo hi > d/e/f; : > .hidden; ln -s d/e/f in; ln -s /workspace/d abs; chmod 555 d/e; chmod 750 d/e/f',
    )
    await sh(first, 'ln -s /etc/passwd out; ln -s ../.. up; mkfifo pipe; echo x > doomed')
    const { files, bytes, skipped } = await first.sync()
    expect([files, bytes]).toEqual([3, 5])
    expect(skipped.map(({ path, reason }) => `${path} ${reason}`)).toEqual(['out link', 'pipe special', 'up link'])
    await first.remove('doomed')
    await first.close()
    const second = await sg.workspace({ persist: 'tree', store })
    const look = 'find . -printf "%P %y %m %l\\n" | sort'
    expect((await sh(second, look)).split('\n').slice(1, -1)).toEqual([
      '.hidden f 644 ',
      'abs l 777 /workspace/d',
      'd d 755 ',
      'd/e d 555 ',
      'd/e/f f 750 ',
      'in l 777 d/e/f',
      'none d 755 ',
    ])
    expect(await sh(second, 'cat in abs/e/f')).toBe('hi\nhi\n')
    await second.close()
  })

  test('only what changed is read, also when size and times are those from before', async () => {
    await using ws = await sg.workspace({ persist: 'changes', store: storeInMemory() })
    await sh(ws, 'for i in $(seq 200); do echo $i > $i; done; touch -d @1000 7; echo a > one; echo b > two')
    await settled(ws)
    expect((await ws.sync()).read).toBe(0)
    await sh(ws, 'echo X > 7; touch -d @1000 7; mv two one')
    expect((await ws.sync()).read).toBe(2)
    await settled(ws)
    await sh(ws, 'chmod 600 8')
    expect((await ws.sync()).read).toBe(1)
  })

  test('a file that changed within 20 ms of a walk is read again at the next one', async () => {
    await using ws = await sg.workspace({ persist: 'unsettled', store: storeInMemory() })
    // On a busy machine some tries take longer than that and show nothing.
    const attempt = async (): Promise<false | number[]> => {
      const began = performance.now()
      await ws.put({ a: String(began) })
      const read = [(await ws.sync()).read, (await ws.sync()).read]
      return performance.now() - began < 20 && read
    }
    const inTime = await vi.waitUntil(attempt, { timeout: 30_000, interval: 1 })
    expect(inTime).toEqual([1, 1])
  })

  test('a workspace is synchronised when an activity ends, and a later owner sees what a dead one stored', async () => {
    const store = storeInMemory()
    const ws = await sg.workspace({ persist: 'ends', store })
    expect(ws.syncedAt).toBeUndefined()
    await ws.run('open("by-script", "w").write("1")')
    await vi.waitUntil(() => ws.syncedAt !== undefined, { timeout: 20_000 })
    const program = await ws.start('cat')
    const before = ws.syncedAt
    await program.kill()
    await vi.waitUntil(() => ws.syncedAt !== before, { timeout: 20_000 })
    await ws.close()
    await using next = await sg.workspace({ persist: 'ends', store })
    expect(Buffer.from(await next.get('by-script')).toString()).toBe('1')
  })

  test('a lost sandbox says what the store has, and the next owner goes on from there', async () => {
    const store = storeInMemory()
    const ws = await sg.workspace({ persist: 'lost', store })
    await ws.put({ kept: '1' })
    const { syncedAt } = await ws.sync()
    const seconds = `60.${process.pid}`
    const lost = ws.exec('sleep', [seconds])
    lost.catch(() => undefined)
    await vi.waitUntil(() => allProcesses().some(({ pid }) => commandLineOf(pid) === `sleep\0${seconds}\0`), {
      timeout: 20_000,
    })
    killSandboxOf(`sleep ${seconds}`)
    await expect(lost).rejects.toMatchObject({
      code: 'workspace_lost',
      message: expect.stringContaining(
        `; the store has its files of ${syncedAt.toISOString()}; open another one`,
      ) as string,
    })
    await ws.close()
    await using next = await sg.workspace({ persist: 'lost', store, waitSec: 10 })
    expect(Buffer.from(await next.get('kept')).toString()).toBe('1')
  })

  test('a checkpoint brings files back, writes only what differs, and names what runs', async () => {
    const store = storeInMemory()
    const ws = await sg.workspace({ persist: 'points', store })
    await sh(ws, 'mkdir d; echo 1 > d/a; echo 2 > b; echo 3 > c; ln -s b l')
    const program = await ws.start('cat')
    const point = await ws.checkpoint()
    expect([point.files, point.bytes, point.running.length]).toEqual([3, 6, 1])
    await program.kill()
    await sh(ws, 'rm -r d; echo other > b; mkdir -p new/deep; rm l; mkdir l')
    expect(await ws.restore(point)).toEqual({ written: 4, removed: 2, running: [] })
    expect(await sh(ws, 'cat d/a b c l; ls')).toBe('1\n2\n3\n2\nb\nc\nd\nl\n')
    await expect(ws.restore('none')).rejects.toMatchObject({ code: 'invalid_request' })
    await sh(ws, 'rm b')
    await ws.close()
    await using next = await sg.workspace({ persist: 'points', store })
    expect((await next.restore(point.id)).written).toBe(1)
  })

  test('a workspace without a store, and options that do not fit, are refused', async () => {
    const store = storeInMemory()
    await using ws = await sg.workspace()
    await expect(ws.sync()).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('persist') as string,
    })
    for (const options of [
      { persist: 'a' },
      { persist: '../a', store },
      { store },
      { persist: 'a', store, waitSec: -1 },
      { waitSec: 1 },
    ])
      await expect(sg.workspace(options)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('a file with a hole of a petabyte is named, and everything else is stored', async () => {
    await using ws = await sg.workspace({ persist: 'hole', store: storeInMemory() })
    await sh(ws, 'echo 1 > a; truncate -s 1P hole; echo 2 > z')
    const { files, skipped } = await ws.sync()
    expect([files, skipped.map(({ path, reason }) => [path, reason])]).toEqual([2, [['hole', 'unread']]])
  })

  test('a store that is full keeps the state from before, says so, and is tried again', async () => {
    const memory = storeInMemory()
    let isFull = false
    const store: Store = {
      ...memory,
      async put(...args) {
        if (isFull) throw new SandglassError('no_space', 'no space is left for the store')
        return memory.put(...args)
      },
    }
    const errors: unknown[] = []
    const ws = await sg.workspace({ persist: 'full', store, onSyncError: (error) => errors.push(error) })
    await ws.put({ a: '1', large: new Uint8Array(300_000) })
    const { syncedAt } = await ws.sync()
    isFull = true
    await ws.put({ a: '2', large: new Uint8Array(300_001) })
    await expect(ws.sync()).rejects.toMatchObject({ code: 'no_space' })
    await ws.exec('true')
    await vi.waitUntil(() => errors.length > 0, { timeout: 20_000 })
    expect(errors[0]).toMatchObject({ code: 'no_space' })
    expect(ws.syncedAt).toEqual(syncedAt)
    isFull = false
    expect((await ws.sync()).bytes).toBe(300_002)
    await ws.close()
  })

  test('a store that loses or changes content is an error, and what it has stays as it is', async () => {
    const memory = storeInMemory()
    const ws = await sg.workspace({ persist: 'hostile', store: memory })
    await ws.put({ a: '1', b: '2' })
    await ws.close()
    const records = JSON.stringify(await Array.fromAsync(memory.records('workspaces')), ['text'])
    const loses: Store = { ...memory, open: async () => undefined }
    await expect(sg.workspace({ persist: 'hostile', store: loses })).rejects.toMatchObject({ code: 'store_damaged' })
    const tree = (text: string): unknown => (JSON.parse(text) as { tree: unknown }).tree
    const after = await Array.fromAsync(memory.records('workspaces'))
    expect(after.map(({ text }) => tree(text))).toEqual(
      (JSON.parse(records) as { text: string }[]).map(({ text }) => tree(text)),
    )
    await using next = await sg.workspace({ persist: 'hostile', store: memory })
    expect(Buffer.from(await next.get('a')).toString()).toBe('1')
  })

  test.skipIf(process.getuid?.() === 0)('a store that is read-only is refused', async () => {
    using directory = temporary()
    chmodSync(directory.path, 0o500)
    const store = storeInDirectory(directory.path)
    await expect(sg.workspace({ persist: 'w', store })).rejects.toMatchObject({ code: 'store_unusable' })
  })

  test('of two processes one owns a workspace; when it is killed, the other one has it at once', async () => {
    using directory = temporary()
    const owner = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', HOST, directory.path, 'shared'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for await (const line of createInterface({ input: owner.stdout })) if (line.startsWith('synced')) break
    const store = storeInDirectory(directory.path)
    await expect(sg.workspace({ persist: 'shared', store })).rejects.toMatchObject({
      code: 'workspace_owned',
      message: expect.stringContaining(`process ${owner.pid}`) as string,
    })
    owner.kill('SIGKILL')
    await once(owner, 'exit')
    const ws = await sg.workspace({ persist: 'shared', store })
    expect(ws.syncedAt).toBeInstanceOf(Date)
    await ws.close()
  }, 30_000)

  test('the next owner may use another engine', async () => {
    const cache = sharedCache()
    try {
      const store = storeInMemory()
      const first = await sg.workspace({ persist: 'engines', store })
      await sh(first, 'mkdir d; echo 1 > d/a; ln -s d/a l; chmod 700 d')
      await first.close()
      const other = await createSandglass({ engine: 'pyodide', poolSize: 0, pyodide: { cacheDir: cache.path } })
      const second = await other.workspace({ persist: 'engines', store })
      const { stdout } = await second.run('print(open("l").read())\nopen("of-pyodide", "w").write("2")')
      expect(stdout).toBe('1\n\n')
      expect((await second.run('print(1)')).stdout).toBe('1\n') // no synchronisation keeps it from running
      await other.close()
      await using third = await sg.workspace({ persist: 'engines', store })
      expect(await sh(third, 'cat l of-pyodide; stat -c %a d')).toBe('1\n2700\n')
    } finally {
      cache[Symbol.dispose]()
    }
  }, 60_000)
})

async function sh(ws: Workspace, command: string): Promise<string> {
  const { stdout, stderr, exitCode } = await ws.exec('sh', ['-c', command])
  expect([stderr, exitCode]).toEqual(['', 0])
  return stdout
}

/** Files of the last 20 ms are read again; afterwards none is. */
async function settled(ws: Workspace): Promise<void> {
  await vi.waitUntil(async () => (await ws.sync()).read === 0, { timeout: 20_000 })
}

/** Kills the first process of the sandbox in which this one runs. */
function killSandboxOf(commandLine: string): void {
  const all = allProcesses()
  let found = all.find(({ pid }) => commandLineOf(pid) === commandLine.replace(' ', '\0') + '\0')
  while (found !== undefined && found.insidePid !== 1) {
    const { parent } = found
    found = all.find(({ pid }) => pid === parent)
  }
  if (found === undefined || found.pid === 1) throw new Error('it does not run in a sandbox')
  process.kill(found.pid, 'SIGKILL')
}

function temporary(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'persist-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
