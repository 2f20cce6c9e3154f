import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxReport } from '../../sandbox/index.ts'
import type { Fixture } from './fixture.ts'
import { python } from './peer.ts'

const needsSystem = ({ level, capabilities }: SandboxReport): string | undefined => {
  if (level === 'none') return `its level is ${level}`
  return capabilities.processes ? undefined : 'a script is not a process of the operating system'
}

/** Tests the environment of a script from inside. */
export function registerIsolationTests(at: Fixture): void {
  at.test(
    'an unprivileged user without capabilities that can gain no privileges',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { result } = await peer.run(python`
          import ctypes, os
          status = dict(line.rstrip('\n').split(':\t', 1) for line in open('/proc/self/status'))
          sets = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']
          emit_result({
              'root': 0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid()), 'groups': 0 in os.getgroups(),
              'capabilities': sorted({status[name] for name in sets if name in status}),
              'no_new_privs': ctypes.CDLL(None).prctl(39, 0, 0, 0, 0),  # not every kernel tells it in /proc
          })
        `)
        const want = { root: false, groups: false, capabilities: ['0000000000000000'], no_new_privs: 1 }
        assert.deepEqual(result, want)
      }),
    needsSystem,
  )

  at.test(
    'writable are the workspace, /tmp, /var/tmp and /dev/shm, and nothing else',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { result } = await peer.run(python`
          import errno, os
          def can(directory):
              path = directory + '/.sandglass-probe'
              try:
                  os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
                  os.unlink(path)
                  return True
              except OSError as error:
                  return False
          found = []
          for base, directories, _ in os.walk('/', topdown=True):
              parts = base.count('/')
              directories[:] = [d for d in directories if os.path.join(base, d) != '/proc' and parts < 3 and not os.path.islink(os.path.join(base, d))]
              if can(base.rstrip('/')): found.append(base)
          emit_result({'writable': sorted(found), 'here': os.getcwd(), 'proc': [can('/proc'), can('/proc/sys/kernel'), can('/proc/self')]})
        `)
        const { here, writable, proc } = result as { here: string; writable: string[]; proc: boolean[] }
        assert.deepEqual(writable, ['/dev/shm', '/tmp', '/var/tmp', here].toSorted())
        assert.deepEqual(proc, [false, false, false])
      }),
    needsSystem,
  )

  at.test(
    'settings of the kernel cannot be changed',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { result } = await peer.run(python`
          import os
          writable = []
          for base, _, names in os.walk('/proc/sys'):
              writable += [os.path.join(base, n) for n in names if os.access(os.path.join(base, n), os.W_OK)]
          emit_result(writable)
        `)
        assert.deepEqual(result, [])
      }),
    needsSystem,
  )

  at.test('nothing of the host’s environment, files and descriptors is inside', ['engine', 'kernel'], async () => {
    const canary = mkdtempSync(join(tmpdir(), 'sandglass-canary-'))
    process.env['SANDGLASS_CANARY'] = canary
    try {
      await at.withAny(async (peer) => {
        const { result } = await peer.run(
          python`
            import os
            here = set(os.listdir('/proc/self/fd')) if os.path.isdir('/proc/self/fd') else set()
            emit_result({
                'environment': sorted(name for name in os.environ if 'SANDGLASS' in name or 'NODE' in name or 'npm' in name),
                'canary': os.path.exists(canary), 'descriptors': sorted(n for n in here if int(n) > 4),
                'home': os.path.exists('/root/.ssh') or os.path.exists('/home') and bool(set(os.listdir('/home')) - set(homes)),
            })
          `,
          { inputs: { canary, homes: [...at.imageHomes] } },
        )
        assert.deepEqual(result, { environment: [], canary: false, descriptors: [], home: false })
      })
    } finally {
      delete process.env['SANDGLASS_CANARY']
      rmSync(canary, { recursive: true })
    }
  })

  at.test(
    'the supervisor is out of reach: no memory, descriptor, environment or signal',
    ['kernel'],
    () =>
      at.withAny(async (peer, { ready }) => {
        const { result } = await peer.run(python`
          import errno, os, signal
          def outcome(call):
              try: call()
              except OSError as error: return errno.errorcode[error.errno]
              return 'open'
          outcomes = {}
          for name in ('mem', 'environ', 'maps', 'auxv'):
              outcomes[name] = outcome(lambda: open('/proc/1/' + name, 'rb').read(1))
          for name in ('fd', 'fdinfo', 'map_files', 'task/1/fd'):
              outcomes[name] = outcome(lambda: os.listdir('/proc/1/' + name))
          for name in ('root', 'cwd', 'exe'):
              outcomes[name] = outcome(lambda: os.readlink('/proc/1/' + name))
          for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGSEGV):
              try: os.kill(1, number)
              except OSError: pass
          try: environment = open('/proc/1/environ').read().split('\0')
          except OSError: environment = []
          emit_result([
              sorted(name for name, outcome in outcomes.items() if outcome not in ('EACCES', 'EPERM', 'ENOENT')),
              sorted(variable.partition('=')[0] for variable in environment if variable),
          ])
        `)
        const [open, environment] = result as [string[], string[]]
        // gVisor shows these. The next test shows that the descriptors are of no use.
        const shown = ['auxv', 'environ', 'fd', 'fdinfo', 'maps', 'task/1/fd']
        const allowed = ready.checks['descriptors_hidden'] === false ? shown : []
        assert.deepEqual(
          open.filter((name) => !allowed.includes(name)),
          [],
        )
        assert.deepEqual(
          environment.filter((name) => !['HOME', 'HOSTNAME', 'PATH'].includes(name)),
          [],
        )
        assert.equal((await peer.run('emit_result(1)')).result, 1)
      }),
    needsSystem,
  )

  at.test(
    'no frame that a script writes to the supervisor’s descriptors is taken for one of the harness',
    ['channel', 'kernel'],
    () =>
      at.with({}, async (peer) => {
        const request = peer.request(python`
          import os
          ending = '{"cause":"exit","exit_code":0,"signal":null,"by":"script"}'
          done = '{"type":"script_done","execution_id":"run-1","ending":' + ending + ',"duration_ms":1,"stdout_bytes":0,"stderr_bytes":0,"limits_hit":[],"warnings":[],"reusable":true,"use":99}'
          for pid in ('1', str(os.getppid())):
              try: names = os.listdir(f'/proc/{pid}/fd')
              except OSError: continue
              for name in names:
                  try: os.write(os.open(f'/proc/{pid}/fd/{name}', os.O_WRONLY | os.O_NONBLOCK), (done + '\n').encode())
                  except OSError: pass
          emit_result('through')
        `)
        assert.equal(request.execution_id, 'run-1')
        await peer.send(request)
        let frame = await peer.next()
        const frames: unknown[] = []
        while (frame !== null && frame.type !== 'script_done') {
          frames.push([frame.type, 'data' in frame ? frame.data : undefined])
          frame = await peer.next()
        }
        // The engine discards a sandbox in which such a write succeeds.
        if (frame === null) return
        assert.deepEqual([frames, frame.use], [[['final_result', 'through']], 1])
      }),
    needsSystem,
  )

  at.test(
    'there is no network',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { result } = await peer.run(python`
          import errno, socket
          def outcome(address):
              try: socket.create_connection(address, timeout=2).close()
              except TimeoutError: return 'silent'
              except OSError as error:
                  # Kernels differ in which of the two they say.
                  return 'unreachable' if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH) else errno.errorcode.get(error.errno, 'no address')
              return 'open'
          emit_result([outcome(('1.1.1.1', 53)), outcome(('169.254.169.254', 80)), outcome(('example.com', 80)), outcome(('127.0.0.1', 22))])
        `)
        // Packets vanish behind an interface whose network lets nothing through.
        const { interfaces } = (await at.report()).probes
        const nowhere = interfaces === 'lo' || interfaces === undefined ? ['unreachable'] : ['unreachable', 'silent']
        const [outside, metadata, ...rest] = result as string[]
        for (const outcome of [outside, metadata]) assert.ok(nowhere.includes(outcome ?? ''), outcome)
        assert.deepEqual(rest, ['no address', 'ECONNREFUSED'])
      }),
    (report) => (report.network === 'none' ? needsSystem(report) : 'its network is open'),
  )

  at.test(
    'the system call filter is loaded: namespaces, tracing, rings, keys and shared memory are refused',
    ['kernel'],
    () =>
      at.withAny(async (peer) => {
        const { result } = await peer.run(python`
          import ctypes, errno, os, socket
          libc = ctypes.CDLL(None, use_errno=True)
          numbers = {'x86_64': {'io_uring_setup': 425, 'unshare': 272, 'ptrace': 101, 'keyctl': 250, 'shmget': 29, 'bpf': 321, 'mount': 165, 'clone3': 435},
                     'aarch64': {'io_uring_setup': 425, 'unshare': 97, 'ptrace': 117, 'keyctl': 219, 'shmget': 194, 'bpf': 280, 'mount': 40, 'clone3': 435}}[os.uname().machine]
          got = {}
          for name, number in numbers.items():
              ctypes.set_errno(0)
              got[name] = errno.errorcode.get(ctypes.get_errno()) if libc.syscall(number, 0, 0, 0, 0, 0, 0) == -1 else 'done'
          try: socket.socket(40, socket.SOCK_STREAM)
          except OSError as error: got['AF_VSOCK'] = errno.errorcode[error.errno]
          status = dict(line.rstrip('\n').split(':\t', 1) for line in open('/proc/self/status'))
          emit_result([got, status['Seccomp']])
        `)
        const refused = { io_uring_setup: 'EPERM', unshare: 'EPERM', ptrace: 'EPERM', keyctl: 'EPERM' }
        const more = { shmget: 'EPERM', bpf: 'EPERM', mount: 'EPERM', clone3: 'ENOSYS', AF_VSOCK: 'EAFNOSUPPORT' }
        assert.deepEqual(result, [{ ...refused, ...more }, '2'])
      }),
    ({ capabilities }) => (capabilities.systemCallFilter ? undefined : 'it has no system call filter'),
  )
}
