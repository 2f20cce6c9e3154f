import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listRemnants, localEngine, pruneRemnants } from '../../../src/engines/local/index.ts'
import { type SandboxRecord, StateDirectory } from '../../../src/engines/local/state.ts'
import { ExecutionMode, ScriptExecutor } from '../../../src/executor/index.ts'
import { resolveLimits, type Sandbox, sandboxLimits, type SandboxSpec } from '../../../src/sandbox/index.ts'
import { requireLocalEngine } from '../../local-engine.ts'
import { HostPlace, NEEDS_ROOT } from './host-place.ts'
import { openDirectory, scopedDirectory } from './state-dir.ts'

const { skip } = await requireLocalEngine()
const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())
const SPEC: SandboxSpec = { limits: sandboxLimits(resolveLimits()) }

function records(stateDir: string): SandboxRecord[] {
  const directory = join(stateDir, 'sandboxes')
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(readFileSync(join(directory, name), 'utf8')) as SandboxRecord)
}

async function result(sandbox: Sandbox, script: string): Promise<unknown> {
  const run = await new ScriptExecutor({ mode: ExecutionMode.PLAN }).run({ sandbox, script })
  expect(run.error).toBeNull()
  return run.finalData
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly uid: number
  readonly command: string
}

/** Every process of the machine that lives. */
function processes(): Process[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8')
      const field = (key: string): number => Number(new RegExp(`^${key}:\\s*(\\d+)`, 'm').exec(status)?.[1])
      if (/^State:\s*Z/m.test(status)) return []
      const command = readFileSync(`/proc/${name}/cmdline`, 'latin1')
      return [{ pid: Number(name), parent: field('PPid'), uid: field('Uid'), command }]
    } catch {
      return []
    }
  })
}

describe.skipIf(skip)('records', () => {
  test('one is there as long as its sandbox lives', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    expect(records(state.path)).toMatchObject([{ id: sandbox.id, host_pid: process.pid }])
    expect((await listRemnants(state.path)).filter(({ sandbox: id }) => id === sandbox.id)).toContainEqual({
      kind: 'record',
      id: join(state.path, 'sandboxes', `${sandbox.id}.json`),
      sandbox: sandbox.id,
      owner: 'alive',
      uid: records(state.path)[0]?.uid ?? null,
    })
    await sandbox.destroy()
    expect(records(state.path)).toEqual([])
    expect((await listRemnants(state.path)).filter(({ sandbox: id }) => id === sandbox.id)).toEqual([])
    await engine.close()
  })

  test('one that cannot be read is set aside and named, and nothing stops', async () => {
    using state = scopedDirectory()
    const broken = {
      'sg-half.json': '{"id":"sg-ha',
      'sg-other.json': JSON.stringify({ id: 'sg-else', slot: 0, owner: 'x', uid: 1, host_pid: 1, cgroups: [] }),
      'sg-path.json': JSON.stringify({ id: 'sg-path', slot: 0, owner: 'x', uid: 1, host_pid: 1, cgroups: ['/etc'] }),
      'sg-type.json': '[]',
    }
    mkdirSync(join(state.path, 'sandboxes'), { recursive: true })
    for (const [name, text] of Object.entries(broken)) writeFileSync(join(state.path, 'sandboxes', name), text)
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    expect(await result(sandbox, 'emit_result(1)')).toBe(1)
    await sandbox.destroy()
    await engine.close()
    const aside = Object.keys(broken).map((name) => `${name}.corrupt`)
    expect(readdirSync(join(state.path, 'sandboxes')).toSorted()).toEqual(aside.toSorted())
    const told = (await listRemnants(state.path)).filter(({ kind }) => kind === 'corrupt-record')
    expect(told.map(({ id }) => id).toSorted()).toEqual(
      aside.map((name) => join(state.path, 'sandboxes', name)).toSorted(),
    )
  })
})

describe.skipIf(skip)('slots', () => {
  const prepared = (path: string): StateDirectory => {
    const state = new StateDirectory(path)
    state.prepare(process.getuid?.() ?? 0)
    return state
  }
  const heldOf = async (state: StateDirectory): Promise<[number, boolean][]> =>
    (await state.namedSlots()).map(({ number, isHeld }) => [number, isHeld])

  test('are named while they are held, seen from every process alike', async () => {
    using directory = scopedDirectory()
    const [mine, theirs] = [prepared(directory.path), prepared(directory.path)]
    const first = await mine.takeSlot()
    const second = await mine.takeSlot()
    for (const state of [mine, theirs]) {
      expect(await Promise.all([heldOf(state), heldOf(state)])).toEqual(
        Array.from({ length: 2 }, () => [
          [0, true],
          [1, true],
        ]),
      )
    }
    second.release()
    expect([await heldOf(theirs), await theirs.isOrphan({ slot: 1, owner: second.owner })]).toEqual([[[0, true]], true])
    first.release()
    expect(await heldOf(mine)).toEqual([])
  })

  test('that a holder left behind keep its name until they are cleared, which a living one is safe from', async () => {
    using directory = scopedDirectory()
    const state = prepared(directory.path)
    writeFileSync(join(directory.path, 'slots/0'), '3f0f3c55-0000-4000-8000-000000000000')
    expect(await heldOf(state)).toEqual([[0, false]])
    expect([await state.clearSlot(0), await heldOf(state)]).toEqual([true, []])
    const slot = await state.takeSlot()
    expect([await prepared(directory.path).clearSlot(0), await heldOf(state)]).toEqual([false, [[0, true]]])
    slot.release()
  })

  test('that were given back twice are not taken from their next holder', async () => {
    using directory = scopedDirectory()
    const state = prepared(directory.path)
    const first = await state.takeSlot()
    first.release()
    const second = await state.takeSlot()
    first.release()
    expect([second.number, await heldOf(prepared(directory.path))]).toEqual([0, [[0, true]]])
    second.release()
  })
})

describe.skipIf(skip)('hosts that share a state directory', () => {
  test('have different slots and, as root, different uids; one that was killed gives way', async () => {
    using state = scopedDirectory()
    const held = await place.hold({ engine: { stateDir: state.path } })
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    const [mine, theirs] = [sandbox.id, held.id].map((id) => records(state.path).find((record) => record.id === id))
    expect([theirs?.slot, mine?.slot]).toEqual([0, 1])
    expect([mine?.uid === null, mine?.uid === theirs?.uid]).toEqual(
      NEEDS_ROOT === undefined ? [false, false] : [true, true],
    )
    expect(theirs?.host_pid).toBe(held.process.pid)

    held.process.kill('SIGKILL')
    await once(held.process, 'exit')
    const remnants = await listRemnants(state.path)
    expect(remnants.find(({ kind, sandbox: id }) => kind === 'record' && id === held.id)).toMatchObject({
      owner: 'gone',
    })
    expect(remnants.find(({ kind, sandbox: id }) => kind === 'record' && id === sandbox.id)).toMatchObject({
      owner: 'alive',
    })

    const next = localEngine({ stateDir: state.path })
    const third = await next.create(SPEC)
    expect(Object.fromEntries(records(state.path).map(({ id, slot }) => [id, slot]))).toEqual({
      [sandbox.id]: 1,
      [third.id]: 0,
    })
    expect((await listRemnants(state.path)).filter(({ sandbox: id }) => id === held.id)).toEqual([])
    expect(await result(sandbox, 'emit_result(1)')).toBe(1)
    await Promise.all([sandbox.destroy(), third.destroy()])
    await Promise.all([engine.close(), next.close()])
  })

  test('prune removes what a killed host left, and nothing of a living one', async () => {
    using state = scopedDirectory()
    const dead = await place.hold({ engine: { stateDir: state.path } })
    const living = await place.hold({ engine: { stateDir: state.path } })
    dead.process.kill('SIGKILL')
    await once(dead.process, 'exit')
    expect((await pruneRemnants(state.path)).map(({ sandbox: id }) => id)).toContain(dead.id)
    expect(records(state.path).map(({ id }) => id)).toEqual([living.id])
    living.process.stdin?.end()
    await once(living.process, 'exit')
    expect(records(state.path)).toEqual([])
  })
})

describe.skipIf(skip || NEEDS_ROOT !== undefined)('two sandboxes of one host', () => {
  const stateDir = openDirectory()
  const engine = localEngine({ stateDir })
  const sandboxes: Sandbox[] = []
  beforeAll(async () => {
    sandboxes.push(...(await Promise.all([engine.create(SPEC), engine.create(SPEC)])))
  })
  afterAll(async () => {
    await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()))
    await engine.close()
    rmSync(stateDir, { recursive: true })
  })

  /** bubblewrap's own process of each sandbox. */
  const launchers = (): Process[] =>
    processes().filter(({ parent, command }) => parent === process.pid && /^\S*bwrap\0/.test(command))

  test('run as different users, none of them root', () => {
    const uids = records(stateDir).map(({ uid }) => uid)
    expect(new Set(uids).size).toBe(2)
    const all = processes()
    for (const uid of uids) {
      const own = all.filter((process) => process.uid === uid)
      expect(own.length).toBeGreaterThanOrEqual(3) // bubblewrap, broker, zygote
    }
    expect(all.filter(({ uid, command }) => uid === 0 && /sandglass_harness import start/.test(command))).toEqual([])
  })

  test('have nothing of the host in the environment and in the arguments', () => {
    const found = launchers()
    expect(found).toHaveLength(2)
    for (const { pid, command } of found) {
      expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).toBe('')
      const [, ...args] = command.split('\0')
      expect(args.slice(0, 3)).toEqual(['--args', '3', '--'])
      for (const secret of [stateDir, import.meta.dirname, process.env['HOME'] ?? '/root', '--ro-bind']) {
        expect(command).not.toContain(secret)
      }
    }
  })

  test('show nothing of the host in the command line of PID 1 and in the mounts either', async () => {
    const [sandbox] = sandboxes
    if (sandbox === undefined) return
    const seen = await result(
      sandbox,
      "emit_result([open('/proc/1/cmdline').read(), open('/proc/self/environ').read()])",
    )
    for (const secret of [stateDir, import.meta.dirname, process.env['HOME'] ?? '/root']) {
      expect(JSON.stringify(seen)).not.toContain(secret)
    }
  })
})

describe.skipIf(skip)('packages', () => {
  const write = (directory: string, value: number): void => {
    mkdirSync(join(directory, 'sg_package'), { recursive: true })
    writeFileSync(join(directory, 'sg_package/__init__.py'), `VALUE = ${value}\n`)
  }
  const IMPORT = 'import sg_package\nemit_result(sg_package.VALUE)'

  const imported = async (stateDir: string, packages: string): Promise<[unknown, number]> => {
    const engine = localEngine({ stateDir })
    const sandbox = await engine.create({ ...SPEC, packages })
    const value = await result(sandbox, IMPORT)
    await sandbox.destroy()
    await engine.close()
    return [value, readdirSync(join(stateDir, 'private')).filter((name) => name.startsWith('packages-')).length]
  }

  test('a directory that everybody can enter is bound as it is', async () => {
    using state = scopedDirectory()
    using packages = scopedDirectory('packages')
    write(packages.path, 1)
    expect(await imported(state.path, packages.path)).toEqual([1, 0])
  })

  test.skipIf(NEEDS_ROOT)(
    'one that the sandbox cannot enter is copied, again when it changed, never twice',
    async () => {
      using state = scopedDirectory()
      using home = scopedDirectory('home')
      chmodSync(home.path, 0o700)
      const packages = join(home.path, 'packages')
      write(packages, 1)
      expect(await imported(state.path, packages)).toEqual([1, 1])
      expect(await imported(state.path, packages)).toEqual([1, 1])
      write(packages, 10)
      expect(await imported(state.path, packages)).toEqual([10, 2])
    },
  )

  test.skipIf(NEEDS_ROOT)(
    'a copy is not to be found by other users, and holds nothing from outside the directory',
    async () => {
      using state = scopedDirectory()
      using home = scopedDirectory('home')
      chmodSync(home.path, 0o700)
      const packages = join(home.path, 'packages')
      write(packages, 1)
      writeFileSync(join(home.path, 'secret.py'), 'VALUE = 2\n')
      symlinkSync('../secret.py', join(packages, 'outward.py'))
      symlinkSync('sg_package', join(packages, 'inward'))
      symlinkSync(join(packages, 'sg_package'), join(packages, 'absolute'))
      expect(await imported(state.path, packages)).toEqual([1, 1])
      const copies = join(state.path, 'private')
      expect(statSync(copies).mode & 0o777).toBe(0o711)
      const [copy = ''] = readdirSync(copies).filter((name) => name.startsWith('packages-'))
      expect(readdirSync(join(copies, copy)).toSorted()).toEqual(['absolute', 'inward', 'sg_package'])
      expect(['absolute', 'inward'].map((name) => readlinkSync(join(copies, copy, name)))).toEqual([
        'sg_package',
        'sg_package',
      ])
    },
  )

  test.skipIf(NEEDS_ROOT)('a file that only its owner may read stays shut to scripts', async () => {
    using state = scopedDirectory()
    using packages = scopedDirectory('packages')
    write(packages.path, 1)
    chmodSync(join(packages.path, 'sg_package/__init__.py'), 0o600)
    await expect(imported(state.path, packages.path)).rejects.toThrow(/PermissionError/)
  })

  test('what a killed host was copying and what nobody used for 30 days is listed and pruned', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    const made = (name: string, days = 0): string => {
      const path = join(state.path, name)
      mkdirSync(path)
      const then = Date.now() / 1000 - days * 86_400
      utimesSync(path, then, then)
      return path
    }
    const owner = records(state.path)[0]
    const gone = [
      made('private/.400-3f0f3c55-0000-4000-8000-000000000000-x'),
      made('private/packages-old', 31),
      made('staged/.0-3f0f3c55-0000-4000-8000-000000000000-x'),
      made('staged/harness-old', 31),
    ]
    const kept = [
      made(`staged/.${owner?.slot}-${owner?.owner}-x`),
      made('private/packages-new', 29),
      made('staged/harness-new', 29),
    ]
    const told = (await listRemnants(state.path)).filter(({ kind }) => kind === 'directory')
    expect(told.map(({ id, owner: of }) => [id, of])).toEqual(gone.map((path) => [path, 'gone']))
    expect((await pruneRemnants(state.path)).filter(({ kind }) => kind === 'directory')).toEqual(told)
    expect([...gone, ...kept].filter((path) => existsSync(path))).toEqual(kept)
    await sandbox.destroy()
    await engine.close()
  })

  test('one that is missing is named by its option', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    await expect(engine.create({ ...SPEC, packages: '/no/such/directory' })).rejects.toMatchObject({
      code: 'packages_unreadable',
      message: expect.stringContaining('packages: /no/such/directory') as string,
    })
    await expect(engine.create({ ...SPEC, toolsDir: '/etc/passwd' })).rejects.toMatchObject({
      code: 'packages_unreadable',
    })
    expect(records(state.path)).toEqual([])
    await engine.close()
  })
})
