import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { listResources, localEngine, pruneOrphans } from '../../../../src/engines/local/index.ts'
import { StateDirectory } from '../../../../src/engines/local/state.ts'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { HostPlace, NEEDS_ROOT } from './host-place.ts'
import { resultOf, SPEC } from './plain-sandbox.ts'
import { recordsIn, scopedDirectory } from '../../../support/engines/local/state-dir.ts'

const { skip } = await requireLocalEngine()
const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())

describe.skipIf(skip)('records', () => {
  test('a record exists while its sandbox lives', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    expect(recordsIn(state.path)).toMatchObject([{ id: sandbox.id, host_pid: process.pid }])
    expect((await listResources(state.path)).filter(({ sandbox: id }) => id === sandbox.id)).toContainEqual({
      kind: 'record',
      id: join(state.path, 'sandboxes', `${sandbox.id}.json`),
      sandbox: sandbox.id,
      owner: 'alive',
      uid: recordsIn(state.path)[0]?.uid ?? null,
    })
    await sandbox.destroy()
    expect(recordsIn(state.path)).toEqual([])
    expect((await listResources(state.path)).filter(({ sandbox: id }) => id === sandbox.id)).toEqual([])
    await engine.close()
  })

  test('an unreadable record is renamed and reported, and the engine continues', async () => {
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
    expect(await resultOf(sandbox, 'emit_result(1)')).toBe(1)
    await sandbox.destroy()
    await engine.close()
    const aside = Object.keys(broken).map((name) => `${name}.corrupt`)
    expect(readdirSync(join(state.path, 'sandboxes')).toSorted()).toEqual(aside.toSorted())
    const records = (await listResources(state.path)).filter(({ kind }) => kind === 'corrupt-record')
    expect(records.map(({ id }) => id).toSorted()).toEqual(
      aside.map((name) => join(state.path, 'sandboxes', name)).toSorted(),
    )
  })
})

describe.skipIf(skip)('slots', () => {
  const prepare = (path: string): StateDirectory => {
    const state = new StateDirectory(path)
    state.prepare(process.getuid?.() ?? 0)
    return state
  }
  const heldOf = async (state: StateDirectory): Promise<[number, boolean][]> =>
    (await state.slots.list()).map(({ number, isHeld }) => [number, isHeld])

  test('are listed as held by every process', async () => {
    using directory = scopedDirectory()
    const [mine, theirs] = [prepare(directory.path), prepare(directory.path)]
    const first = await mine.slots.take()
    const second = await mine.slots.take()
    for (const state of [mine, theirs]) {
      expect(await Promise.all([heldOf(state), heldOf(state)])).toEqual(
        Array.from({ length: 2 }, () => [
          [0, true],
          [1, true],
        ]),
      )
    }
    second.release()
    expect([await heldOf(theirs), await theirs.slots.isGone({ slot: 1, owner: second.owner })]).toEqual([
      [[0, true]],
      true,
    ])
    first.release()
    expect(await heldOf(mine)).toEqual([])
  })

  test('of a dead holder keep its name until they are cleared; those of a living one cannot be cleared', async () => {
    using directory = scopedDirectory()
    const state = prepare(directory.path)
    writeFileSync(join(directory.path, 'slots/0'), '3f0f3c55-0000-4000-8000-000000000000')
    expect(await heldOf(state)).toEqual([[0, false]])
    expect([await state.slots.clear(0), await heldOf(state)]).toEqual([true, []])
    const slot = await state.slots.take()
    expect([await prepare(directory.path).slots.clear(0), await heldOf(state)]).toEqual([false, [[0, true]]])
    slot.release()
  })

  test('that are released twice stay with their next holder', async () => {
    using directory = scopedDirectory()
    const state = prepare(directory.path)
    const first = await state.slots.take()
    first.release()
    const second = await state.slots.take()
    first.release()
    expect([second.number, await heldOf(prepare(directory.path))]).toEqual([0, [[0, true]]])
    second.release()
  })
})

describe.skipIf(skip)('hosts that share a state directory', () => {
  test('have different slots and, as root, different uids; a killed host frees its own', async () => {
    using state = scopedDirectory()
    const held = await place.hold({ engine: { stateDir: state.path } })
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    const [mine, theirs] = [sandbox.id, held.id].map((id) => recordsIn(state.path).find((record) => record.id === id))
    expect([theirs?.slot, mine?.slot]).toEqual([0, 1])
    expect([mine?.uid === null, mine?.uid === theirs?.uid]).toEqual(
      NEEDS_ROOT === undefined ? [false, false] : [true, true],
    )
    expect(theirs?.host_pid).toBe(held.process.pid)

    held.process.kill('SIGKILL')
    await once(held.process, 'exit')
    const resources = await listResources(state.path)
    expect(resources.find(({ kind, sandbox: id }) => kind === 'record' && id === held.id)).toMatchObject({
      owner: 'gone',
    })
    expect(resources.find(({ kind, sandbox: id }) => kind === 'record' && id === sandbox.id)).toMatchObject({
      owner: 'alive',
    })

    const next = localEngine({ stateDir: state.path })
    const third = await next.create(SPEC)
    expect(Object.fromEntries(recordsIn(state.path).map(({ id, slot }) => [id, slot]))).toEqual({
      [sandbox.id]: 1,
      [third.id]: 0,
    })
    expect((await listResources(state.path)).filter(({ sandbox: id }) => id === held.id)).toEqual([])
    expect(await resultOf(sandbox, 'emit_result(1)')).toBe(1)
    await Promise.all([sandbox.destroy(), third.destroy()])
    await Promise.all([engine.close(), next.close()])
  })

  test('prune removes the orphans of a killed host, and nothing of a living one', async () => {
    using state = scopedDirectory()
    const dead = await place.hold({ engine: { stateDir: state.path } })
    const living = await place.hold({ engine: { stateDir: state.path } })
    dead.process.kill('SIGKILL')
    await once(dead.process, 'exit')
    expect((await pruneOrphans(state.path)).map(({ sandbox: id }) => id)).toContain(dead.id)
    expect(recordsIn(state.path).map(({ id }) => id)).toEqual([living.id])
    living.process.stdin?.end()
    await once(living.process, 'exit')
    expect(recordsIn(state.path)).toEqual([])
  })
})
