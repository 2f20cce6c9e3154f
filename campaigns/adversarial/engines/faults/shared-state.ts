import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listResources } from '../../../../src/engines/local/index.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { startHost } from '../../driver/host-process.ts'
import { openEngine, recordsOf } from '../local.ts'
import { runTrivialScript } from './hosts.ts'

/** FLT-025: corrupt records are renamed and reported, and living sandboxes are kept. */
export async function setsCorruptRecordsAside(): Promise<void> {
  const engine = openEngine()
  await using living = startHost(engine)
  await living.open({ poolSize: 1 })
  await runTrivialScript(living)
  const good = recordsOf(engine.state)
  const records = join(engine.state, 'sandboxes')
  const garbled = {
    'sg-empty.json': '',
    'sg-cut.json': '{"id":"sg-cut","slot":',
    'sg-zero.json': '\0'.repeat(300),
    'sg-other.json': '[]',
  }
  for (const [name, text] of Object.entries(garbled)) writeFileSync(join(records, name), text)
  mkdirSync(join(records, 'sg-directory.json'))
  // Slot 0 belongs to the living host and slot 1 to nobody. Slot 2 is a directory, which cannot be locked.
  const slots = join(engine.state, 'slots')
  writeFileSync(join(slots, '0'), '\0\0garbage')
  writeFileSync(join(slots, '1'), '\0\0garbage')
  mkdirSync(join(slots, '2'))
  await using host = startHost(engine)
  await host.open({ poolSize: 1 })
  await using another = startHost(engine)
  await another.open({ poolSize: 1 })
  await Promise.all([host, another, living].map(runTrivialScript))
  const resources = await listResources(engine.state)
  const reported = resources.filter(({ kind }) => kind === 'corrupt-record').map(({ id }) => id.replace(/^.*\//, ''))
  const wanted = ['2', ...[...Object.keys(garbled), 'sg-directory.json'].map((name) => `${name}.corrupt`)]
  assert.deepEqual(reported.toSorted(), wanted.toSorted())
  assert.deepEqual(
    good.filter((id) => engine.processesOf(id).length === 0),
    [],
    'a living sandbox was lost',
  )
  for (const each of [host, another, living]) await each.close()
  await engine.close()
}

/** FLT-026: two hosts share a state directory. Uids differ, and the orphans of a killed host are removed. */
export async function sharesStateBetweenHosts(): Promise<void> {
  const engine = openEngine()
  await using first = startHost(engine)
  await using second = startHost(engine)
  await Promise.all([first, second].map((host) => host.open({ poolSize: 2 })))
  for (let round = 0; round < 5; round += 1) await Promise.all([first, second].map(runTrivialScript))
  let uids: number[] = []
  // Pools fill in the background, and a record is written before its processes exist.
  const missing = await eventually(() => {
    uids = recordsOf(engine.state).flatMap((id) => engine.processesOf(id)[0]?.uid ?? [])
    return uids.length === 4 ? undefined : `${uids.length} sandboxes instead of 4`
  }, 20_000)
  assert.equal(missing, undefined)
  assert.equal(new Set(uids).size, uids.length, `two sandboxes have one uid: ${uids.join(', ')}`)
  const recordsBefore = recordsOf(engine.state).length
  first.signal('SIGKILL')
  await first.gone
  await runTrivialScript(second)
  await using third = startHost(engine)
  await third.open({ poolSize: 1 })
  await runTrivialScript(third)
  await Promise.all([second.close(), third.close()])
  assert.deepEqual(
    recordsOf(engine.state),
    [],
    `records are left; there were ${recordsBefore} before the host was killed`,
  )
  const slots = readdirSync(join(engine.state, 'slots')).filter((name) => Number(name) > 1)
  assert.deepEqual(slots, [], 'the slot of the killed host was not taken over')
  await engine.close()
}
