import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { listRemnants, localEngine, pruneRemnants } from '../../../src/engines/local/index.ts'
import { StateDirectory } from '../../../src/engines/local/state.ts'
import { requireLocalEngine } from '../../local-engine.ts'
import { HostPlace, NEEDS_ROOT } from './host-place.ts'
import { resultOf, SPEC } from './plain-sandbox.ts'
import { recordsIn, scopedDirectory } from './state-dir.ts'

const { skip } = await requireLocalEngine()
const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())

describe.skipIf(skip)('records', () => {
  test('one is there as long as its sandbox lives', async () => {
    using state = scopedDirectory()
    const engine = localEngine({ stateDir: state.path })
    const sandbox = await engine.create(SPEC)
    expect(recordsIn(state.path)).toMatchObject([{ id: sandbox.id, host_pid: process.pid }])
    expect((await listRemnants(state.path)).filter(({ sandbox: id }) => id === sandbox.id)).toContainEqual({
      kind: 'record',
      id: join(state.path, 'sandboxes', `${sandbox.id}.json`),
      sandbox: sandbox.id,
      owner: 'alive',
      uid: recordsIn(state.path)[0]?.uid ?? null,
    })
    await sandbox.destroy()
    expect(recordsIn(state.path)).toEqual([])
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
    expect(await resultOf(sandbox, 'emit_result(1)')).toBe(1)
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
    const [mine, theirs] = [sandbox.id, held.id].map((id) => recordsIn(state.path).find((record) => record.id === id))
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
    expect(Object.fromEntries(recordsIn(state.path).map(({ id, slot }) => [id, slot]))).toEqual({
      [sandbox.id]: 1,
      [third.id]: 0,
    })
    expect((await listRemnants(state.path)).filter(({ sandbox: id }) => id === held.id)).toEqual([])
    expect(await resultOf(sandbox, 'emit_result(1)')).toBe(1)
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
    expect(recordsIn(state.path).map(({ id }) => id)).toEqual([living.id])
    living.process.stdin?.end()
    await once(living.process, 'exit')
    expect(recordsIn(state.path)).toEqual([])
  })
})
