import type { PeersDaemon } from './daemon.ts'
import { type Driver, type Home, makeHome, startDriver } from './driver.ts'
import { findOrphans } from './orphans.ts'
import type { Peer } from './peers.ts'
import type { MeasuredRow, Row } from './result.ts'
import { SCRIPT, timeDeadline, timeRuns, timeToolCalls } from './timings.ts'
import { exposed, leaks } from './visibility.ts'

/** The number of measurements of each kind. */
export interface Rounds {
  readonly cold: number
  readonly warm: number
  readonly tool: number
  readonly deadline: number
}

/** Options of the measurement. */
export interface MeasureOptions {
  readonly daemon?: PeersDaemon
  readonly versions: Readonly<Record<string, string>>
  readonly rounds: Rounds
  readonly tell: (line: string) => void
}

type Behaviour = Pick<MeasuredRow, 'toolCall' | 'timeout' | 'orphans' | 'leaks' | 'exposed'>

interface Running {
  readonly peer: Peer
  readonly home: Home
  readonly driver: Driver
}

/** All rows. A peer that fails is listed with its error, without figures. */
export async function measureAll(peers: readonly Peer[], options: MeasureOptions): Promise<Row[]> {
  const { daemon, tell, rounds } = options
  const failures = new Map<string, string>()
  const attempt = async <T>(peer: Peer, what: string, act: () => Promise<T>): Promise<T | undefined> => {
    tell(`${peer.id}: ${what}`)
    try {
      return await act()
    } catch (error) {
      tell(`${peer.id}: ${String(error)}`)
      failures.set(peer.id, `${what}: ${String(error)}`)
      return undefined
    }
  }
  const env = daemon === undefined ? {} : { DOCKER_HOST: daemon.host }

  // One by one, while no other peer has a container.
  const alone = new Map<string, Behaviour>()
  for (const peer of peers) {
    if (peer.docker && daemon === undefined) {
      failures.set(peer.id, 'no Docker daemon can be started here')
      continue
    }
    const found = await attempt(peer, 'behaviour', () => measureAlone(peer, env, options))
    if (found !== undefined) alone.set(peer.id, found)
    for (const { id } of daemon?.containers() ?? []) daemon?.remove(id)
  }

  const running: Running[] = []
  for (const peer of peers.filter(({ id }) => alone.has(id))) {
    const home = makeHome()
    const driver = startDriver(peer.command, home, env)
    const opened = await attempt(peer, 'open', () => driver.ask('open').then(() => driver.ask('run', { code: SCRIPT })))
    if (opened === undefined) await driver.kill().then(() => home.remove())
    else running.push({ peer, home, driver })
  }
  tell('timing all of them in turn')
  const times = await timeRuns(new Map(running.map(({ peer, driver }) => [peer.id, driver])), rounds)
  for (const { driver, home } of running) await driver.close().then(() => home.remove())

  return peers.map((peer): Row => {
    const { id, name } = peer
    const versions = Object.fromEntries(peer.packages.map((each) => [each, options.versions[each] ?? 'unknown']))
    const [behaviour, time] = [alone.get(id), times.get(id)]
    if (behaviour === undefined || time === undefined) {
      return { id, name, versions, missing: failures.get(id) ?? 'not measured' }
    }
    return { id, name, versions, ...time, ...behaviour }
  })
}

async function measureAlone(
  peer: Peer,
  env: Readonly<Record<string, string>>,
  { daemon, rounds }: MeasureOptions,
): Promise<Behaviour> {
  const left = await findOrphans(peer.command, env, peer.docker ? daemon : undefined)
  const home = makeHome()
  const driver = startDriver(peer.command, home, env)
  try {
    await driver.ask('open')
    await driver.ask('run', { code: SCRIPT })
    const toolCall = await timeToolCalls(driver, rounds.tool)
    const found = { leaks: await leaks(driver, home), exposed: await exposed(driver, home, daemon?.gateway) }
    const timeout = await timeDeadline(driver, peer.docker ? daemon : undefined, rounds.deadline)
    return { toolCall, timeout, orphans: left, ...found }
  } finally {
    await driver.close()
    home.remove()
  }
}
