import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, cpSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SandboxReport } from '../../../src/sandbox/index.ts'
import { requireLocalEngine } from '../../local-engine.ts'
import { HostPlace, NEEDS_ROOT, ORDINARY } from './host-place.ts'

const { skip } = await requireLocalEngine()
if (NEEDS_ROOT !== undefined) console.warn(`skipped: what takes something away from a host: ${NEEDS_ROOT}`)
const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())

const UNUSABLE: Omit<SandboxReport, 'reasons'> = {
  engine: 'local',
  usable: false,
  level: 'none',
  limitsEnforced: [],
  network: 'none',
  capabilities: {
    processes: false,
    threads: false,
    preload: false,
    packages: false,
    toolsDir: false,
    systemCallFilter: false,
    uidPerSandbox: false,
  },
  probes: {},
}
const ALL_LIMITS = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']
const python = realpathSync('/usr/bin/python3')
let directories = 0
const stateDir = (): string => place.directory(`state-${(directories += 1)}`)
/** A state directory for a host with this process's uid. */
const rootDir = (): string => {
  const path = join(place.path, `root-state-${(directories += 1)}`)
  mkdirSync(path, { mode: 0o755 })
  return path
}

/** Checks that a report is the one of an engine that cannot be used, and gives its only reason. */
function refusal(report: SandboxReport): { code: string; message: string; remedy: string } {
  const { reasons, ...rest } = report
  expect(rest).toEqual(UNUSABLE)
  expect(reasons.map(({ severity }) => severity)).toEqual(['error'])
  const [{ code, message, remedy } = { code: '', message: '', remedy: '' }] = reasons
  return { code, message, remedy }
}

describe.skipIf(skip)('programs', () => {
  test('without bubblewrap on PATH, it says so and how to install it', () => {
    const path = place.programs('no-bwrap', { python3: python, flock: '/usr/bin/flock' })
    const { code, message, remedy } = refusal(
      place.report({ engine: { stateDir: rootDir() } }, { env: { PATH: path } }).report,
    )
    expect({ code, remedy }).toEqual({
      code: 'bubblewrap_missing',
      remedy: 'apt-get install bubblewrap (or the package of your distribution)',
    })
    expect(message).toContain('apt-get install bubblewrap')
  })

  test('a bubblewrap that does nothing is no bubblewrap that works', () => {
    const path = place.programs('false-bwrap', { bwrap: '/bin/false', python3: python, flock: '/usr/bin/flock' })
    const { report } = place.report({ engine: { stateDir: rootDir() } }, { env: { PATH: path } })
    expect(refusal(report).code).toBe('sandbox_setup_failed')
  })

  test('a bubblewrap that cannot be executed is passed over, and named where it was asked for', () => {
    const path = place.programs('broken-bwrap', { python3: python, flock: '/usr/bin/flock' })
    const bwrap = join(path, 'bwrap')
    writeFileSync(bwrap, '', { mode: 0o644 })
    const onPath = place.report({ engine: { stateDir: rootDir() } }, { env: { PATH: path } })
    expect(refusal(onPath.report).code).toBe('bubblewrap_missing')
    const named = refusal(place.report({ engine: { stateDir: rootDir(), bwrap } }).report)
    expect([named.code, named.message.includes(bwrap)]).toEqual(['bubblewrap_missing', true])
  })

  test.skipIf(NEEDS_ROOT)('a Python that the sandbox cannot reach is named with the way out', () => {
    const closed = join(place.path, 'closed')
    mkdirSync(join(closed, 'bin'), { recursive: true })
    copyFileSync(python, join(closed, 'bin/python3'))
    chmodSync(join(closed, 'bin/python3'), 0o755)
    chmodSync(closed, 0o700)
    const wanted = join(closed, 'bin/python3')
    const { code, message } = refusal(place.report({ engine: { stateDir: rootDir(), python: wanted } }).report)
    expect([code, message.includes(wanted)]).toEqual(['python_unreachable', true])

    const path = place.programs('closed-first', { bwrap: '/usr/bin/bwrap', flock: '/usr/bin/flock' })
    const { report } = place.report({ engine: { stateDir: rootDir() } }, { env: { PATH: `${closed}/bin:${path}` } })
    expect([report.usable, report.probes['python']]).toEqual([true, python])
    expect(report.probes['python_passed_over']).toEqual([
      expect.stringMatching(/closed\/bin\/python3 .* lies in a directory that uid \d+ cannot enter$/),
    ])
  })

  test('a Python that is too old is passed over, and refused where it was asked for', () => {
    const path = place.programs('old-python', { bwrap: '/usr/bin/bwrap', flock: '/usr/bin/flock' })
    const old = join(path, 'python3')
    writeFileSync(old, `#!/bin/sh\necho '{"version":[3,9,18],"path":"/old","directories":["/old"],"libraries":[]}'\n`, {
      mode: 0o755,
    })
    const { report } = place.report({ engine: { stateDir: rootDir() } }, { env: { PATH: path } })
    expect([report.usable, report.probes['python'], report.probes['python_passed_over']]).toEqual([
      true,
      python,
      [`${old} is 3.9.18, older than 3.10`],
    ])
    const refused = refusal(place.report({ engine: { stateDir: rootDir(), python: old } }).report)
    expect([refused.code, refused.message.includes('3.9.18')]).toEqual(['python_missing', true])
    const missing = refusal(place.report({ engine: { stateDir: rootDir(), python: '/no/such/python' } }).report)
    expect(missing.code).toBe('python_missing')
  })

  test('a shim on PATH is resolved to the Python behind it', () => {
    const path = place.programs('shim', { bwrap: '/usr/bin/bwrap', flock: '/usr/bin/flock' })
    writeFileSync(join(path, 'python3'), `#!/bin/sh\nexec ${python} "$@"\n`, { mode: 0o755 })
    const { report } = place.report({ engine: { stateDir: rootDir() } }, { env: { PATH: path } })
    expect([report.usable, report.probes['python'], report.probes['python_passed_over']]).toEqual([true, python, []])
  })
})

describe.skipIf(skip || NEEDS_ROOT !== undefined)('a Python outside of /usr', () => {
  const stdlib = execFileSync(python, ['-c', 'import os; print(os.path.dirname(os.__file__))'], { encoding: 'utf8' })
  // Not below /tmp, which every sandbox has of its own.
  const opt = `/opt/sandglass-python-${process.pid}`
  beforeAll(() => {
    mkdirSync(join(opt, 'bin'), { recursive: true })
    chmodSync(opt, 0o755)
    writeFileSync(join(opt, 'private.txt'), 'a secret', { mode: 0o644 })
    copyFileSync(python, join(opt, 'bin/python3'))
  })
  afterAll(() => rmSync(opt, { recursive: true, force: true }))
  const SEE = `
import glob
emit_result([glob.glob('${opt}/*'), glob.glob('${opt}/bin/*'), glob.glob('/root/*') + glob.glob('/home/*')])
`

  test('shows scripts the program, and nothing that lies beside it', () => {
    const wanted = join(opt, 'bin/python3')
    const { report, result } = place.report({ engine: { stateDir: rootDir(), python: wanted }, script: SEE })
    expect([report.usable, report.probes['python']]).toEqual([true, wanted])
    expect(result?.finalData).toEqual([[join(opt, 'bin')], [wanted], []])
  })

  test('works with a standard library of its own, found through a link', () => {
    const own = join(opt, 'own')
    mkdirSync(join(own, 'bin'), { recursive: true })
    copyFileSync(python, join(own, 'bin/python3'))
    writeFileSync(join(own, 'private.txt'), 'a secret', { mode: 0o644 })
    cpSync(stdlib.trim(), join(own, 'lib', basename(stdlib.trim())), { recursive: true })
    const link = place.programs('python-link', { python3: join(own, 'bin/python3') })
    const script = `
import ctypes, glob, lzma, os, sqlite3, ssl, zlib
emit_result([os.__file__.startswith('${own}/lib/'), ssl.OPENSSL_VERSION != '', sorted(glob.glob('${own}/*'))])
`
    const { report, result } = place.report({ engine: { stateDir: rootDir(), python: join(link, 'python3') }, script })
    expect(report.probes['python']).toBe(join(own, 'bin/python3'))
    expect(result).toEqual({
      status: 'completed',
      error: null,
      finalData: [true, true, [join(own, 'bin'), join(own, 'lib')]],
    })
  })

  test('is refused where a sandbox has a directory of its own, or where it would show a home', () => {
    const below = (path: string): string => {
      copyFileSync(python, path)
      chmodSync(path, 0o755)
      return path
    }
    const temporary = refusal(
      place.report({ engine: { stateDir: rootDir(), python: below(join(place.path, 'python3')) } }).report,
    )
    expect(temporary.code).toBe('python_unreachable')
    expect(temporary.message).toContain('a sandbox has a /tmp of its own')

    const home = join(opt, 'home')
    mkdirSync(join(home, 'bin'), { recursive: true })
    const liar = join(home, 'bin/python3')
    const words = JSON.stringify({ version: [3, 11, 2], path: liar, directories: [home], libraries: [] })
    writeFileSync(liar, `#!/bin/sh\necho '${words}'\n`, { mode: 0o755 })
    const env = { PATH: '/usr/bin:/bin', HOME: join(home, 'of-somebody') }
    const { code, message } = refusal(place.report({ engine: { stateDir: rootDir(), python: liar } }, { env }).report)
    expect([code, message.includes(`would show ${home}/of-somebody to scripts`)]).toEqual(['python_unreachable', true])
  })
})

describe.skipIf(skip || NEEDS_ROOT !== undefined)('the machine', () => {
  test('as root with control groups, every limit holds and each sandbox has a uid of its own', () => {
    const { report } = place.report({ engine: { stateDir: rootDir() } })
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
    })
  })

  test('where user namespaces are forbidden, it names the causes and the remedy', () => {
    const forbid = ['bwrap', '--dev-bind', '/', '/', '--unshare-user', '--disable-userns', '--']
    const { report } = place.report({ engine: { stateDir: stateDir() } }, { uid: ORDINARY, wrapper: forbid })
    const { code, message, remedy } = refusal(report)
    expect(code).toBe('userns_forbidden')
    for (const word of ['user.max_user_namespaces', 'running-in-a-container.md']) expect(message).toContain(word)
    for (const word of ['apparmor_restrict_unprivileged_userns', 'user.max_user_namespaces'])
      expect(remedy).toContain(word)
  })

  test('as root that may not look into other processes, as in a container, it finds the namespaces all the same', () => {
    const blind = ['setpriv', '--bounding-set', '-sys_ptrace', '--inh-caps', '-sys_ptrace', '--']
    const { report } = place.report({ engine: { stateDir: rootDir() } }, { wrapper: blind })
    expect([report.usable, report.probes['namespaces']]).toEqual([
      true,
      ['user', 'pid', 'net', 'ipc', 'uts', 'cgroup', 'mnt'],
    ])
  })

  test('where /proc is masked, as Docker does it, it says what a container must be given', () => {
    const mask = ['unshare', '-m', 'sh', '-c', 'mount --bind /dev/null /proc/keys && exec "$@"', 'sh']
    const { report } = place.report({ engine: { stateDir: rootDir() } }, { wrapper: mask })
    const { code, message, remedy } = refusal(report)
    expect(code).toBe('sandbox_setup_failed')
    expect(message).toContain("Can't mount proc")
    expect(remedy).toContain('running-in-a-container.md')
  })

  test('without control groups, it warns and limits memory for each process alone', () => {
    const cover = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', 'sh']
    const { report, result } = place.report(
      {
        engine: { stateDir: rootDir() },
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

  test('as an ordinary user, it works, and warns of one uid for all and of missing control groups', () => {
    const { report, result } = place.report(
      { engine: { stateDir: stateDir() }, script: 'import os\nemit_result([os.getuid(), os.listdir(".")])' },
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

  test('as root of a user namespace that has one id only, it works as for an ordinary user', () => {
    const { report, result } = place.report(
      { engine: { stateDir: stateDir() }, script: 'emit_result(1)' },
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

describe.skipIf(skip)('the state directory', () => {
  test('one that cannot be made or written is named with the way out', () => {
    const file = join(place.path, 'a-file')
    writeFileSync(file, '')
    const { code, message, remedy } = refusal(place.report({ engine: { stateDir: join(file, 'state') } }).report)
    expect([code, message.includes(file), message.includes('SANDGLASS_STATE_DIR')]).toEqual([
      'state_dir_unusable',
      true,
      true,
    ])
    expect(remedy).toContain('SANDGLASS_STATE_DIR')
  })

  const masked = ['sh', '-c', 'umask 077 && exec "$@"', 'sh']

  test.skipIf(NEEDS_ROOT)('one that was made under a strict umask can be entered by sandboxes all the same', () => {
    const path = join(rootDir(), 'made/here')
    const { report, result } = place.report(
      { engine: { stateDir: path }, script: 'emit_result(1)' },
      { wrapper: masked },
    )
    expect([report.usable, result?.finalData]).toEqual([true, 1])
  })

  test.skipIf(NEEDS_ROOT)('one below a directory that sandboxes cannot enter is refused, naming that directory', () => {
    const closed = join(rootDir(), 'closed')
    mkdirSync(closed, { mode: 0o700 })
    const { code, message } = refusal(place.report({ engine: { stateDir: join(closed, 'state') } }).report)
    expect(code).toBe('state_dir_unusable')
    expect(message).toMatch(new RegExp(`uid 2000000000 cannot enter ${closed}: chmod o\\+x it`))
    const own = rootDir()
    chmodSync(own, 0o700)
    expect(refusal(place.report({ engine: { stateDir: own } }).report).message).toContain(`cannot enter ${own}:`)
  })

  test('one that others can write to is refused, because what is staged there runs first in every sandbox', () => {
    for (const name of ['', 'staged', 'sandboxes']) {
      for (const mode of [0o777, 0o775]) {
        const path = rootDir()
        mkdirSync(join(path, name), { recursive: true })
        chmodSync(join(path, name), mode)
        const { code, message } = refusal(place.report({ engine: { stateDir: path } }).report)
        expect(code).toBe('state_dir_unusable')
        expect(message).toContain(`${join(path, name)} can be written by others: chmod go-w it`)
      }
    }
  })

  test.skipIf(NEEDS_ROOT)('one of another user is refused, for root as well', () => {
    const { code, message } = refusal(place.report({ engine: { stateDir: stateDir() } }).report)
    expect([code, message.includes(`belongs to uid ${ORDINARY}`)]).toEqual(['state_dir_unusable', true])
    const path = rootDir()
    mkdirSync(join(path, 'staged'))
    chownSync(join(path, 'staged'), ORDINARY, ORDINARY)
    expect(refusal(place.report({ engine: { stateDir: path } }).report).message).toContain(
      `${path}/staged belongs to uid ${ORDINARY}`,
    )
  })

  test.skipIf(NEEDS_ROOT)('one that belongs to somebody else is unusable for an ordinary user', () => {
    const closed = join(place.path, 'of-root')
    mkdirSync(closed, { mode: 0o755 })
    const { report } = place.report({ engine: { stateDir: closed } }, { uid: ORDINARY })
    expect(refusal(report).code).toBe('state_dir_unusable')
  })

  test.skipIf(NEEDS_ROOT)('on a full disk, it says no_space, and works again once there is room', () => {
    const directory = join(place.path, 'small')
    mkdirSync(directory, { mode: 0o755 })
    const small = [
      'unshare',
      '-m',
      'sh',
      '-c',
      `mount -t tmpfs -o size=4m,mode=755 none ${directory} && exec "$@"`,
      'sh',
    ]
    const [full, freed] = place.run<SandboxReport>(
      { act: 'full-disk', engine: { stateDir: directory } },
      { wrapper: small },
    )
    expect(full === undefined ? undefined : refusal(full)).toEqual({
      code: 'no_space',
      message: `no space left for the state directory ${directory}: free some, then try again`,
      remedy: 'free space on the file system of the state directory',
    })
    expect([freed?.usable, freed?.reasons.filter(({ severity }) => severity === 'error')]).toEqual([true, []])
  })
})
