import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { CoreV1Api, KubeConfig, V1NetworkPolicy } from '@kubernetes/client-node'
import { NetworkingV1Api } from '@kubernetes/client-node'
import { NAMESPACE } from './kubernetes-cluster.ts'

/** A chain for packets by their source, and one by their destination. */
const [BY_SOURCE, BY_DESTINATION] = ['SANDGLASS-TEST', 'SANDGLASS-TEST-TO']
const POLL_MS = 50

/**
 * The smallest network plugin that enforces policies, for a one-node cluster whose pods are on a bridge of this machine: pods that a
 * policy without rules selects reach nothing over the bridge, all others everything.
 */
export class PolicyEnforcer implements AsyncDisposable {
  readonly #bridge: string
  readonly #admin: CoreV1Api
  readonly #policies: NetworkingV1Api
  #allowed = ''
  #enforcing: Promise<void> = Promise.resolve()
  #isOn = false

  constructor(bridge: string, config: KubeConfig, admin: CoreV1Api) {
    this.#bridge = bridge
    this.#admin = admin
    this.#policies = config.makeApiClient(NetworkingV1Api)
    execFileSync('sh', ['-c', `echo 1 > /sys/class/net/${bridge}/bridge/nf_call_iptables`])
    this.#write([`-A ${BY_SOURCE} -j ACCEPT`])
    for (const chain of ['FORWARD', 'INPUT']) iptables(['-I', chain, '-i', bridge, '-j', BY_SOURCE])
  }

  /** Begins to enforce; resolves when it does. */
  async enforce(): Promise<void> {
    this.#isOn = true
    await this.#update()
    this.#enforcing = (async () => {
      while (this.#isOn) {
        await this.#update()
        await new Promise((resolve) => {
          setTimeout(resolve, POLL_MS)
        })
      }
    })()
  }

  /** Stops to enforce: everybody reaches everybody. */
  async ignore(): Promise<void> {
    this.#isOn = false
    await this.#enforcing
    this.#allowed = ''
    this.#write([`-A ${BY_SOURCE} -j ACCEPT`])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.ignore()
    for (const chain of ['FORWARD', 'INPUT']) iptables(['-D', chain, '-i', this.#bridge, '-j', BY_SOURCE])
    for (const chain of [BY_SOURCE, BY_DESTINATION]) iptables(['-F', chain])
    for (const chain of [BY_SOURCE, BY_DESTINATION]) iptables(['-X', chain])
    execFileSync('sh', ['-c', `echo 0 > /sys/class/net/${this.#bridge}/bridge/nf_call_iptables`])
  }

  async #update(): Promise<void> {
    const [{ items: pods }, { items: policies }] = await Promise.all([
      this.#admin.listNamespacedPod({ namespace: NAMESPACE }),
      this.#policies.listNamespacedNetworkPolicy({ namespace: NAMESPACE }),
    ])
    const free = pods
      .filter(({ metadata }) => !policies.some((policy) => selects(policy, metadata?.labels ?? {})))
      .flatMap(({ status }) => status?.podIP ?? [])
      .toSorted()
    if (this.#allowed === free.join()) return
    this.#allowed = free.join()
    this.#write([
      ...free.map((address) => `-A ${BY_SOURCE} -s ${address} -j ${BY_DESTINATION}`),
      `-A ${BY_SOURCE} -j DROP`,
      ...free.map((address) => `-A ${BY_DESTINATION} -d ${address} -j ACCEPT`),
      `-A ${BY_DESTINATION} -m addrtype --dst-type LOCAL -j ACCEPT`,
      `-A ${BY_DESTINATION} -j DROP`,
    ])
  }

  /** Replaces both chains at once. */
  #write(rules: readonly string[]): void {
    const head = ['*filter', `:${BY_SOURCE} - [0:0]`, `:${BY_DESTINATION} - [0:0]`]
    execFileSync('iptables-restore', ['-w', '--noflush'], { input: [...head, ...rules, 'COMMIT', ''].join('\n') })
  }
}

function selects({ spec }: V1NetworkPolicy, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(spec?.podSelector?.matchLabels ?? {}).every(([name, value]) => labels[name] === value)
}

function iptables(args: readonly string[]): void {
  execFileSync('iptables', ['-w', ...args])
}

/** Gives this machine an address on the bridge, at which pods reach the API server, until it is disposed of. */
export async function serveOnBridge(
  bridge: string,
  address: string,
  server: URL,
): Promise<AsyncDisposable & { port: number }> {
  execFileSync('ip', ['address', 'add', `${address}/24`, 'dev', bridge])
  const proxy = createServer((client) => {
    const up = connect(Number(server.port), server.hostname)
    for (const [from, to] of [
      [client, up],
      [up, client],
    ] as const) {
      from.on('error', () => to.destroy())
      from.pipe(to)
    }
  })
  proxy.listen(0, address)
  await once(proxy, 'listening')
  const { port } = proxy.address() as { port: number }
  return {
    port,
    async [Symbol.asyncDispose]() {
      proxy.close()
      execFileSync('ip', ['address', 'delete', `${address}/24`, 'dev', bridge])
      await Promise.resolve()
    },
  }
}
