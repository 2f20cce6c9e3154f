import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, statfs, writeFile } from 'node:fs/promises'
import { freemem } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { messageOf, SandglassError } from '../../errors/index.ts'

/** A root directory to make from Debian packages. */
export interface RootfsPlan {
  readonly suite: string
  readonly mirror: string
  /** Debian's name of a kind of processor, for example `amd64`. */
  readonly architecture: string
  readonly packages: readonly string[]
}

/** How it went. */
export interface RootfsMade {
  /** The archive, in the working directory. */
  readonly path: string
  /** Version of its Python, for example `3.11.2`. */
  readonly python: string
}

const GIGABYTE = 1e9
/** What unpacking and configuring takes at its peak, and what is left of it, both with room for other releases. */
const ROOT_BYTES = 0.6 * GIGABYTE
const ARCHIVE_BYTES = 0.1 * GIGABYTE

/**
 * Makes the directory with debootstrap, in namespaces of its own: whatever becomes of it, its mounts and processes end
 * with it. All it writes lies in `work`.
 * @throws SandglassError that says what is missing, or `aborted`.
 */
export async function buildRootfs(
  plan: RootfsPlan,
  work: string,
  { signal, onProgress }: { signal?: AbortSignal | undefined; onProgress: (line: string) => void },
): Promise<RootfsMade> {
  const inMemory = freemem() > 3 * GIGABYTE
  const { bavail, bsize } = await statfs(work)
  const needed = inMemory ? ARCHIVE_BYTES : ARCHIVE_BYTES + ROOT_BYTES
  if (bavail * bsize < needed) {
    throw new SandglassError('no_space', `building an image needs ${needed / 1e6} MB below ${dirname(work)}; free some`)
  }
  await mkdir(join(work, 'root'), { mode: 0o755 })
  // Without it, wget tries a mirror that does not answer for a quarter of an hour.
  await writeFile(join(work, 'wgetrc'), 'timeout = 30\ntries = 3\nwaitretry = 2\n')
  const told = new Account(plan, onProgress)
  const exitCode = await runIsolated(scriptArgs(plan, work, inMemory), work, told, signal)
  if (signal?.aborted === true) throw new SandglassError('aborted', 'aborted while an image was built')
  if (exitCode !== 0) throw told.failure(exitCode)
  return { path: join(work, ARCHIVE), python: told.python }
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

/** Runs inside the new root, where no link leads outside. What debootstrap copied from this machine goes, too. */
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

/** Changes when the same packages are made into something else. */
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

/** The script as the first process of a pid namespace, with a view of the mounts that is private: neither outlives it. */
async function runIsolated(
  args: readonly string[],
  work: string,
  told: Account,
  signal: AbortSignal | undefined,
): Promise<number | null> {
  const wrapper = ['--pdeathsig', 'KILL', '--', 'unshare', '--mount', '--propagation', 'private', '--pid', '--fork']
  const shell = ['--kill-child', '--mount-proc', 'sh', '-euc', SCRIPT, 'sh', ...args]
  const child = spawn('setpriv', [...wrapper, ...shell], {
    env: { ...environment(), WGETRC: join(work, 'wgetrc') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // the terminal's Ctrl-C is ours alone
  })
  const kill = (): void => {
    child.kill('SIGKILL')
  }
  if (signal?.aborted === true) kill()
  signal?.addEventListener('abort', kill)
  try {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream, crlfDelay: Infinity }).on('line', (line) => told.note(line))
    }
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
  } catch (error) {
    throw new SandglassError(
      'image_build_failed',
      `the programs setpriv and unshare are needed (${messageOf(error)}): apt-get install util-linux`,
      { cause: error },
    )
  } finally {
    signal?.removeEventListener('abort', kill)
  }
}

/** Nothing of the host's environment but the way to the network. */
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

/** An address without user name and password. */
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

/** What debootstrap said: progress for people, and its last words. */
class Account {
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

  failure(exitCode: number | null): SandglassError {
    const { suite, architecture } = this.#plan
    const mirror = withoutSecrets(this.#plan.mirror)
    const words = this.#last
      .filter((line) => !line.startsWith('I: '))
      .join('\n')
      .replaceAll(this.#plan.mirror, mirror)
    const said = words === '' ? `it ended with ${exitCode ?? 'a signal'}` : `it said:\n${words}`
    const made = (code: SandglassError['code'], message: string): SandglassError =>
      new SandglassError(code, `${message}; ${said}`)
    if (/No space left on device/.test(words)) return made('no_space', 'the disk became full while the image was built')
    if (/No such script/.test(words)) {
      return made('invalid_request', `debootstrap knows no suite ${JSON.stringify(suite)}; take bookworm or trixie`)
    }
    if (/keyring|signature|signed by|gpgv/i.test(words)) {
      const remedy = 'apt-get install debian-archive-keyring gpgv'
      return made(
        'image_build_failed',
        `what ${mirror} offers is not signed by a key of Debian that is known here: ${remedy}`,
      )
    }
    if (/Failed getting release file|Couldn't download|Failed to get|wget: /i.test(words)) {
      const remedy = 'check the network and http_proxy, or name another with --mirror'
      return made('mirror_unreachable', `${suite} for ${architecture} cannot be had from ${mirror}: ${remedy}`)
    }
    if (/unshare|noexec or nodev|Operation not permitted|Permission denied|mount:/.test(words)) {
      return made(
        'image_build_failed',
        'debootstrap needs the right to mount and to make device nodes: root of the machine, or of a privileged container',
      )
    }
    return made('image_build_failed', `debootstrap could not build ${suite} from ${mirror}`)
  }
}
