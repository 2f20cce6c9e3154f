import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { dockerEngine, type DockerEngineOptions } from '../../../../src/engines/docker/index.ts'
import { createSandglass } from '../../../../src/sandglass.ts'
import { requirePrivateDaemon, startDaemon } from '../../../support/docker-daemon.ts'
import { requireDockerEngine } from '../../../support/docker-engine.ts'
import { scopedDirectory } from '../../../support/engines/docker/scoped-directory.ts'

const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
const SCRIPT = readFileSync(join(import.meta.dirname, 'system_calls.py'), 'utf8')

interface Answers {
  /** The number of filters that the kernel evaluates for each system call. */
  readonly filters: number
  readonly answers: Readonly<Record<string, string>>
}

/** Runs a program in a container with the same hardening, without a harness. */
function underDockerAlone(): Answers {
  const measures = ['--network=none', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--read-only']
  const flags = ['run', '--rm', '--interactive', ...measures, '--user=2000100001', '--entrypoint=python3', image, '-']
  const input = `import json\ndef tell(value):\n    print(json.dumps(value))\n${SCRIPT}`
  const { status, stdout, stderr } = spawnSync('docker', flags, { input, encoding: 'utf8' })
  if (status !== 0) throw new Error(`docker run: ${stderr}`)
  return JSON.parse(stdout) as Answers
}

async function inSandbox(options: DockerEngineOptions): Promise<Answers> {
  await using sandglass = await createSandglass({ engine: dockerEngine(options), poolSize: 1 })
  const { finalData, error } = await sandglass.run(`tell = emit_result\n${SCRIPT}`)
  if (error !== null) throw new Error(error)
  return finalData as Answers
}

const refusedCalls = ({ answers }: Answers): Record<string, string> =>
  Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== 'reached'))

/** The calls that the harness's filter refuses. Docker's profile alone allows all but the last five. */
const OURS = {
  ptrace: 'EPERM',
  shmget: 'EPERM',
  msgget: 'EPERM',
  mq_open: 'EPERM',
  setpriority: 'EPERM',
  'socket AF_NETLINK': 'EAFNOSUPPORT',
  'socket AF_VSOCK': 'EAFNOSUPPORT',
  process_vm_readv: 'EPERM',
  keyctl: 'EPERM',
  unshare: 'EPERM',
  name_to_handle_at: 'EPERM',
  clone3: 'ENOSYS',
}
/** The calls that Docker's default profile refuses and the harness's filter does not. */
const DOCKERS = { mbind: 'EPERM', set_mempolicy: 'EPERM', personality: 'EPERM' }

describe.skipIf(noDocker)('two filters of system calls are in force', () => {
  test("a call that Docker's default profile or the harness's filter refuses is refused", async () => {
    const docker = underDockerAlone()
    const both = await inSandbox({ image })
    expect([docker.filters, both.filters]).toEqual([1, 2])
    expect(refusedCalls(docker)).toMatchObject(DOCKERS)
    // Without the harness's filter, a script could reach these.
    expect(['ptrace', 'shmget', 'msgget', 'mq_open', 'setpriority'].map((name) => docker.answers[name])).toEqual(
      Array.from({ length: 5 }, () => 'reached'),
    )
    expect(refusedCalls(both)).toEqual({ ...OURS, ...DOCKERS })
    expect(both.answers['socket AF_INET']).toBe('reached')
  })

  test.skipIf(noDaemon)(
    "where the daemon's profile allows everything, the harness's filter still holds",
    async () => {
      using place = scopedDirectory()
      const profile = join(place.path, 'profile.json')
      writeFileSync(profile, JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW' }))
      await using daemon = await startDaemon({ flags: [`--seccomp-profile=${profile}`] })
      await daemon.load(image)
      const alone = await inSandbox({ image, host: daemon.host })
      expect(refusedCalls(alone)).toEqual(OURS)
      const engine = dockerEngine({ image, host: daemon.host })
      const { usable, reasons, capabilities } = await engine.report()
      expect([usable, capabilities.systemCallFilter, reasons.map(({ code }) => code)]).toEqual([
        true,
        true,
        ['no_daemon_seccomp'],
      ])
      await engine.close()
    },
    180_000,
  )
})
