import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import type Docker from 'dockerode'
import { describe, expect, test } from 'vitest'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { GVISOR, requirePrivateDaemon, startDaemon } from '../../support/docker-daemon.ts'
import { DAEMON_PREFIX } from '../../support/daemon-remains.ts'
import { allProcesses } from '../../support/processes.ts'

const { skip: noImage, image } = await requireDockerEngine()
const skip = requirePrivateDaemon().skip || noImage
const { skip: skipGvisor } = requirePrivateDaemon({ gvisor: true })
const MINUTES = 3 * 60_000

/** Starts an idle container. */
async function sleeper(client: Docker, runtime?: string): Promise<Docker.Container> {
  const HostConfig = { NetworkMode: 'none', ...(runtime === undefined ? {} : { Runtime: runtime }) }
  const made = await client.createContainer({ Image: image, Cmd: ['sleep', '1000'], StopSignal: 'SIGKILL', HostConfig })
  await made.start()
  return made
}

/** Resources of a daemon and its containers on this machine. */
function remains(directory: string, containers: readonly string[]): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return [
    ...(existsSync(directory) ? [directory] : []),
    ...mounts.filter((line) => line.includes(directory)),
    ...allProcesses().flatMap(({ pid }) => (ofDaemon(pid, directory, containers) ? [`process ${pid}`] : [])),
    ...readFileSync('/proc/self/cgroup', 'utf8')
      .split('\n')
      .map((line) => line.split(':')[1]?.replace('name=', '') ?? '')
      .flatMap((name) => containers.map((id) => `/sys/fs/cgroup/${name}/docker/${id}`))
      .filter((path) => existsSync(path)),
  ]
}

function ofDaemon(pid: number, directory: string, containers: readonly string[]): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8')
    return pid !== process.pid && (words.includes(`${directory}/`) || containers.some((id) => groups.includes(id)))
  } catch {
    return false // it ended meanwhile
  }
}

describe.skipIf(skip).concurrent("a daemon of a test's own", () => {
  test(
    'is killed with running containers, comes back with its images, and leaves nothing when it is closed',
    async () => {
      const daemon = await startDaemon()
      await daemon.load(image)
      const running = await sleeper(daemon.client)
      const before = daemon.pid
      await daemon.kill()
      await expect(daemon.client.ping()).rejects.toThrow(/ECONNREFUSED|ENOENT/)
      await daemon.restart()
      expect(daemon.pid).not.toBe(before)
      expect((await running.inspect()).State.Running).toBe(false)
      await running.start()
      await daemon.close()
      expect(remains(daemon.directory, [running.id])).toEqual([])
    },
    MINUTES,
  )

  test(
    'that was killed is removed with containers that still run',
    async () => {
      const daemon = await startDaemon({ diskBytes: 600e6 })
      await daemon.load(image)
      const { id } = await sleeper(daemon.client)
      await daemon.kill()
      expect(remains(daemon.directory, [id])).toContainEqual(expect.stringContaining('process'))
      await daemon.close()
      expect(remains(daemon.directory, [id])).toEqual([])
    },
    MINUTES,
  )

  test.skipIf(skipGvisor)(
    'runs containers on gVisor',
    async () => {
      await using daemon = await startDaemon({ runtimes: GVISOR })
      await daemon.load(image)
      const container = await sleeper(daemon.client, 'runsc')
      const { Runtimes } = (await daemon.client.info()) as { Runtimes: object }
      expect([Object.keys(Runtimes), (await container.inspect()).State.Running]).toEqual([
        expect.arrayContaining(['runc', 'runsc']),
        true,
      ])
    },
    MINUTES,
  )

  test('whose test runner was killed is removed when the next one starts', async () => {
    const abandoned = `${DAEMON_PREFIX}4194305-abandoned` // above the largest pid of a kernel
    mkdirSync(abandoned)
    await using daemon = await startDaemon()
    expect([existsSync(abandoned), existsSync(daemon.directory)]).toEqual([false, true])
  })
})
