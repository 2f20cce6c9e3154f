import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A root directory to make from Debian packages. */
export interface RootfsPlan {
  readonly suite: string
  readonly mirror: string
  /** Debian's name of a kind of processor, for example `amd64`. */
  readonly architecture: string
  readonly packages: readonly string[]
}

/** The archive of a root directory. */
export interface RootfsMade {
  readonly path: string
  /** Version of its Python, for example `3.11.2`. */
  readonly python: string
}

/** The unpacked directory takes less than a third of it. */
const MEMORY_BYTES = 3e9

/**
 * Makes the directory with debootstrap, in namespaces of its own, so that its mounts and processes end with it. All files
 * lie in `work`.
 */
export async function buildRootfs(
  plan: RootfsPlan,
  work: string,
  { signal, onProgress }: { signal?: AbortSignal | undefined; onProgress: (line: string) => void },
): Promise<RootfsMade> {
  await mkdir(join(work, 'root'), { mode: 0o755 })
  // The default of wget is to retry a mirror that does not answer for a quarter of an hour.
  await writeFile(join(work, 'wgetrc'), 'timeout = 30\ntries = 3\nwaitretry = 2\n')
  const log = new BuildLog(plan, onProgress)
  const exitCode = await runIsolated(scriptArgs(plan, work, freemem() > MEMORY_BYTES), work, log, signal)
  signal?.throwIfAborted()
  if (exitCode !== 0) throw log.failure(exitCode)
  return { path: join(work, ARCHIVE), python: log.python }
}

const ARCHIVE = 'rootfs.tar.gz'
const PYTHON_LINE = 'sandglass-python '

/** $1 working directory, $2 `memory` or `disk`, $3 architecture, $4 packages, $5 suite, $6 mirror, $7 the same to leave inside, $8 {@link STRIP}. */
const SCRIPT = `
umask 022
cd "$1"
if [ "$2" = memory ]; then mount -t tmpfs -o size=2g,mode=0755 sandglass-rootfs root; fi
debootstrap --force-check-gpg --variant=minbase --arch="$3" --include="$4" "$5" "$1/root" "$6"
chroot root /bin/sh -euc "$8" sh "$5" "$7"
chroot root python3 -c 'import platform; print("${PYTHON_LINE}" + platform.python_version())'
tar -C root -czf ${ARCHIVE} --numeric-owner --sort=name --one-file-system \\
  --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' .
`

/** Runs inside the new root, where no link leads outside. Also removes the files that debootstrap copied from this machine. */
const STRIP = `
find /var/cache /var/lib/apt/lists /var/log -type f -delete
rm -rf /tmp/* /var/tmp/* /run/* /debootstrap /etc/machine-id /var/lib/dbus/machine-id
rm -rf /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/menu /usr/share/pixmaps
find /usr/share/doc -type f ! -name copyright -delete
find /usr/share/doc -type l ! -name copyright -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
find / -xdev -perm /6000 -type f -exec chmod a-s {} +
find /var/lib/dpkg /etc -maxdepth 1 -name '*-old' -delete
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/.pwd.lock
: > /etc/hostname
: > /etc/resolv.conf
chmod 644 /etc/hostname /etc/resolv.conf
echo "deb $2 $1 main" > /etc/apt/sources.list
`

/** Identifies the steps: part of the cache key. */
export const RECIPE: string = createHash('sha256')
  .update(SCRIPT + STRIP)
  .digest('hex')

function scriptArgs(plan: RootfsPlan, work: string, inMemory: boolean): string[] {
  const { suite, mirror, architecture, packages } = plan
  return [
    work,
    inMemory ? 'memory' : 'disk',
    architecture,
    packages.join(','),
    suite,
    mirror,
    withoutSecrets(mirror),
    STRIP,
  ]
}

/** Runs the script as the first process of a pid namespace, with private mounts: neither outlives it. */
async function runIsolated(
  args: readonly string[],
  work: string,
  log: BuildLog,
  signal: AbortSignal | undefined,
): Promise<number | null> {
  const wrapper = ['--pdeathsig', 'KILL', '--', 'unshare', '--mount', '--propagation', 'private', '--pid', '--fork']
  const shell = ['--kill-child', '--mount-proc', 'sh', '-euc', SCRIPT, 'sh', ...args]
  const child = spawn('setpriv', [...wrapper, ...shell], {
    env: { ...environment(), WGETRC: join(work, 'wgetrc') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // Ctrl-C in the terminal reaches this process only
  })
  const kill = (): void => {
    child.kill('SIGKILL')
  }
  if (signal?.aborted === true) kill()
  signal?.addEventListener('abort', kill)
  try {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => log.note(line))
    }
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
  } finally {
    signal?.removeEventListener('abort', kill)
  }
}

/** Returns only the proxy variables of this process's environment. */
function environment(): Record<string, string> {
  const proxies = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']
  const kept = proxies.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
  return {
    ...(Object.fromEntries(kept) as Record<string, string>),
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LC_ALL: 'C',
    HOME: '/root',
    DEBIAN_FRONTEND: 'noninteractive',
  }
}

/** Removes user name and password from an address. */
export function withoutSecrets(mirror: string): string {
  const url = new URL(mirror)
  url.username = ''
  url.password = ''
  return url.href.replace(/\/+$/, '')
}

const STAGES: readonly (readonly [RegExp, string])[] = [
  [/^I: Checking Release signature/, 'checking the signature of the mirror'],
  [/^I: Resolving dependencies of required packages/, 'downloading packages'],
  [/^I: Installing core packages/, 'unpacking them'],
  [/^I: Configuring required packages/, 'configuring them'],
  [/^I: Unpacking the base system/, 'unpacking python3 and what it needs'],
  [/^I: Configuring the base system/, 'configuring it'],
  [/^I: Base system installed successfully/, 'removing documentation and caches, and packing'],
]
const KEPT_LINES = 12

/** The output of debootstrap: progress messages, and its last lines. */
class BuildLog {
  readonly #plan: RootfsPlan
  readonly #onProgress: (line: string) => void
  readonly #last: string[] = []
  python = ''

  constructor(plan: RootfsPlan, onProgress: (line: string) => void) {
    this.#plan = plan
    this.#onProgress = onProgress
  }

  note(line: string): void {
    if (line.startsWith(PYTHON_LINE)) this.python = line.slice(PYTHON_LINE.length)
    const stage = STAGES.find(([pattern]) => pattern.test(line))
    if (stage !== undefined) this.#onProgress(stage[1])
    this.#last.push(line)
    if (this.#last.length > KEPT_LINES) this.#last.shift()
  }

  failure(exitCode: number | null): Error {
    const { suite, architecture } = this.#plan
    const mirror = withoutSecrets(this.#plan.mirror)
    const words = this.#last
      .filter((line) => !line.startsWith('I: '))
      .join('\n')
      .replaceAll(this.#plan.mirror, mirror)
    const end = words === '' ? `it ended with ${exitCode ?? 'a signal'}` : `it said:\n${words}`
    return new Error(`debootstrap could not build ${suite} for ${architecture} from ${mirror}; ${end}`)
  }
}
