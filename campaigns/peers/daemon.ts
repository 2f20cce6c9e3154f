import { spawnSync } from 'node:child_process'
import { buildImage } from '../../scripts/image/build.ts'
import { startDaemon } from '../../test/support/docker-daemon.ts'

const BASE = 'sandglass-python:latest'
/** The image of llm-sandbox, in place of the one that it pulls by default, and of smolagents' DockerExecutor. */
const PEERS_IMAGE = 'peers-python:latest'
const GATEWAY_IMAGE = 'peers-gateway:latest'
/** The command of the Dockerfile of smolagents' DockerExecutor, without the launcher `jupyter`. */
const GATEWAY = ['python3', '-m', 'kernel_gateway', '--KernelGatewayApp.ip=0.0.0.0', '--KernelGatewayApp.port=8888']

/** A private Docker daemon of the bench: every container on it was made by a peer. */
export interface PeersDaemon extends AsyncDisposable {
  readonly host: string
  readonly version: string
  /** The address by which containers on its default network reach this machine. */
  readonly gateway: string
  /** Every container that exists, running or not. */
  containers(): { id: string; running: boolean }[]
  remove(id: string): void
}

/**
 * Starts it with Docker's default bridge network (the tests' daemons have none), but without a route out of this machine,
 * and gives it the images. Needs root, dockerd, iproute2 and, the first time, debootstrap.
 */
export async function startPeersDaemon(layer: string): Promise<PeersDaemon> {
  const bridge = `sgpeers${process.pid}`
  const gateway = `172.31.${process.pid % 250}.1`
  run('ip', 'link', 'add', bridge, 'type', 'bridge')
  const removeBridge = (): void => void spawnSync('ip', ['link', 'del', bridge])
  process.once('exit', removeBridge)
  try {
    run('ip', 'addr', 'add', `${gateway}/24`, 'dev', bridge)
    run('ip', 'link', 'set', bridge, 'up')
    const daemon = await startDaemon({ flags: [`--bridge=${bridge}`, '--userland-proxy=true'] })
    const docker = (...args: readonly string[]): string => run('docker', '--host', daemon.host, ...args)
    const close = async (): Promise<void> => {
      await daemon.close()
      process.removeListener('exit', removeBridge)
      removeBridge()
    }
    try {
      await buildImage({ host: daemon.host })
      layOver(docker, daemon.host, layer)
    } catch (error) {
      await daemon.close()
      throw error
    }
    return {
      host: daemon.host,
      version: docker('version', '--format', '{{.Server.Version}}'),
      gateway,
      containers: () =>
        docker('ps', '--all', '--no-trunc', '--format', '{{.ID}} {{.State}}')
          .split('\n')
          .filter(Boolean)
          .map((line) => {
            const [id = '', state = ''] = line.split(' ')
            return { id, running: state === 'running' }
          }),
      remove: (id) => {
        try {
          docker('rm', '--force', '--volumes', id)
        } catch (error) {
          // With `--rm` the daemon removes it as well, as soon as it ends.
          if (!/already in progress|No such container/i.test(String(error))) throw error
        }
      },
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    removeBridge()
    throw error
  }
}

/** Commits a container of the base image with the layer in it. */
function layOver(docker: (...args: readonly string[]) => string, host: string, layer: string): void {
  const id = docker('create', BASE, 'true')
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', `tar -C "$1" -c . | docker --host "$2" cp - "$3:/"`, 'sh', layer, host, id],
    {
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(`docker cp: ${stderr}`)
  docker('commit', '--change', 'CMD ["python3"]', id, PEERS_IMAGE)
  docker('commit', '--change', `CMD ${JSON.stringify(GATEWAY)}`, '--change', 'EXPOSE 8888', id, GATEWAY_IMAGE)
  docker('rm', id)
}

function run(program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`)
  return stdout.trim()
}
