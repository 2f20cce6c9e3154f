import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { HostPlace, NEEDS_ROOT, ORDINARY } from './host-place.ts'
import { refusal } from './refusal.ts'

const { skip } = await requireLocalEngine()
if (NEEDS_ROOT !== undefined) console.warn(`skipped: tests that restrict a host: ${NEEDS_ROOT}`)
const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())
const ALL_LIMITS = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']

describe.skipIf(skip || NEEDS_ROOT !== undefined)('the machine', () => {
  test('as root with control groups, every limit holds and each sandbox has a uid of its own', () => {
    const { report } = place.report({ engine: { stateDir: place.stateDir() } })
    const { reasons, limitsEnforced, capabilities, level, network } = report
    if (report.probes['cgroup_version'] === null) {
      console.warn('skipped: this machine has no control groups to write')
      return
    }
    expect({ reasons, limitsEnforced, level, network }).toEqual({
      reasons: [],
      limitsEnforced: ALL_LIMITS,
      level: 'os-sandbox',
      network: 'none',
    })
    expect(capabilities).toEqual({
      processes: true,
      threads: true,
      preload: true,
      packages: true,
      toolsDir: true,
      systemCallFilter: true,
      uidPerSandbox: true,
      workspaces: true,
      concurrentActivities: true,
      programs: true,
      lesserCpus: true,
      sessions: 'checkpoints',
    })
  })

  test('where user namespaces are forbidden, it names the causes and the remedy', () => {
    const forbid = ['bwrap', '--dev-bind', '/', '/', '--unshare-user', '--disable-userns', '--']
    const { report } = place.report(
      { engine: { stateDir: place.stateDir(ORDINARY) } },
      { uid: ORDINARY, wrapper: forbid },
    )
    const { code, message, remedy } = refusal(report)
    expect(code).toBe('userns_forbidden')
    for (const word of ['user.max_user_namespaces', 'running-in-a-container.md']) expect(message).toContain(word)
    for (const word of ['apparmor_restrict_unprivileged_userns', 'user.max_user_namespaces'])
      expect(remedy).toContain(word)
  })

  test('as root without access to other processes, as in a container, it still finds the namespaces', () => {
    const blind = ['setpriv', '--bounding-set', '-sys_ptrace', '--inh-caps', '-sys_ptrace', '--']
    const { report } = place.report({ engine: { stateDir: place.stateDir() } }, { wrapper: blind })
    expect([report.usable, report.probes['namespaces']]).toEqual([
      true,
      ['user', 'pid', 'net', 'ipc', 'uts', 'cgroup', 'mnt'],
    ])
  })

  test('where /proc is masked, as in Docker, it names the options that a container needs', () => {
    const mask = ['unshare', '-m', 'sh', '-c', 'mount --bind /dev/null /proc/keys && exec "$@"', 'sh']
    const { report } = place.report({ engine: { stateDir: place.stateDir() } }, { wrapper: mask })
    const { code, message, remedy } = refusal(report)
    expect(code).toBe('sandbox_setup_failed')
    expect(message).toContain("Can't mount proc")
    expect(remedy).toContain('running-in-a-container.md')
  })

  test('without control groups, it warns and limits memory per process', () => {
    const cover = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', 'sh']
    const { report, result } = place.report(
      {
        engine: { stateDir: place.stateDir() },
        script: 'x = []\nwhile True: x.append(b"x" * 4_000_000)',
        limits: { memoryBytes: 160 * 1024 * 1024 },
      },
      { wrapper: cover },
    )
    expect([report.usable, report.limitsEnforced, report.probes['cgroup_version']]).toEqual([
      true,
      ['pids', 'disk', 'output', 'wall'],
      null,
    ])
    expect(report.reasons.map(({ severity, code }) => [severity, code])).toEqual([['warning', 'no_cgroup']])
    expect(report.reasons[0]?.message).toContain('memory, pids, cpu')
    expect(report.reasons[0]?.remedy).toContain('running-in-a-container.md')
    expect(result).toEqual({ status: 'memory-limit', error: 'MemoryError', finalData: null })
  })

  test('as an ordinary user, it works, and warns of a shared uid and of missing control groups', () => {
    const { report, result } = place.report(
      {
        engine: { stateDir: place.stateDir(ORDINARY) },
        script: 'import os\nemit_result([os.getuid(), os.listdir(".")])',
      },
      { uid: ORDINARY },
    )
    expect([report.usable, report.level, report.capabilities.uidPerSandbox]).toEqual([true, 'os-sandbox', false])
    expect(report.reasons.map(({ severity, code }) => [severity, code])).toEqual([
      ['warning', 'no_cgroup'],
      ['warning', 'one_uid'],
    ])
    expect(report.limitsEnforced).toEqual(['pids', 'disk', 'output', 'wall'])
    expect(result).toEqual({ status: 'completed', error: null, finalData: [1000, []] })
  })

  test('as root of a user namespace with a single id, it works as for an ordinary user', () => {
    const { report, result } = place.report(
      { engine: { stateDir: place.stateDir(ORDINARY) }, script: 'emit_result(1)' },
      { uid: ORDINARY, wrapper: ['unshare', '--user', '--map-root-user'] },
    )
    expect([report.usable, report.reasons.map(({ code }) => code)]).toEqual([true, ['no_cgroup', 'one_uid']])
    expect(result).toEqual({ status: 'completed', error: null, finalData: 1 })
  })

  test('an ordinary user has a state directory of its own by default', () => {
    const { report } = place.report({}, { uid: ORDINARY })
    expect(report.probes['state_dir']).toBe(join(place.path, 'home/.local/state/sandglass'))
    const env = { PATH: '/usr/bin:/bin', HOME: '/nowhere', XDG_STATE_HOME: join(place.path, 'home/xdg') }
    expect(place.report({}, { uid: ORDINARY, env }).report.probes['state_dir']).toBe(
      join(place.path, 'home/xdg/sandglass'),
    )
  })
})
