import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { CoreV1Api, KubeConfig, V1NetworkPolicy } from '@kubernetes/client-node'
import { NetworkingV1Api } from '@kubernetes/client-node'
import { NAMESPACE } from './kubernetes-cluster.ts'
import { podNetworks } from './pod-networks.ts'

/** A chain for packets by their source, and one by their destination. */
const [BY_SOURCE, BY_DESTINATION] = ['SANDGLASS-TEST', 'SANDGLASS-TEST-TO']
const HOOKS = ['FORWARD', 'INPUT']
const POLL_MS = 50
/** The file in which a bridge says whether its packets pass the rules of an IP version, by the program for the rules. */
const SWITCHES = { iptables: 'nf_call_iptables', ip6tables: 'nf_call_ip6tables' }
type Program = keyof typeof SWITCHES
const PROGRAMS = ['iptables', 'ip6tables'] as const

/**
 * The smallest network plugin that enforces policies, for a one-node cluster whose pods are on a bridge of this machine, which is named
 * as their network: pods that a policy without rules selects reach nothing over the bridge, all others everything. Disposing of it
 * restores the machine.
 */
export class PolicyEnforcer implements AsyncDisposable {
  readonly #bridge: string
  readonly #admin: CoreV1Api
  readonly #policies: NetworkingV1Api
  readonly #before: readonly (readonly [Program, string])[]
  #versions: readonly Program[] = []
  #written = ''
  #enforcing: Promise<void> = Promise.resolve()

  constructor(bridge: string, config: KubeConfig, admin: CoreV1Api) {
    this.#bridge = bridge
    this.#admin = admin
    this.#policies = config.makeApiClient(NetworkingV1Api)
    // Of a run that was killed.
    for (const program of PROGRAMS) removeRules(program, bridge)
    this.#before = PROGRAMS.map((program) => [program, readFileSync(switchOf(bridge, program), 'utf8').trim()])
    try {
      for (const program of PROGRAMS) {
        write(program, [`-A ${BY_SOURCE} -j ACCEPT`])
        for (const hook of HOOKS) run(program, ['-I', hook, '-i', bridge, '-j', BY_SOURCE])
        writeFileSync(switchOf(bridge, program), '1')
      }
    } catch (error) {
      this.#restore()
      throw error
    }
  }

  /** Begins to enforce, for IPv4 and IPv6 or only some of them; resolves when it does. */
  async enforce(versions: readonly Program[] = PROGRAMS): Promise<void> {
    await this.ignore()
    this.#versions = versions
    await this.#update()
    this.#enforcing = (async () => {
      while (this.#versions.length > 0) {
        await this.#update()
        await new Promise((resolve) => {
          setTimeout(resolve, POLL_MS)
        })
      }
    })()
    this.#enforcing.catch(() => undefined) // `ignore` throws it
  }

  /** Stops to enforce: everybody reaches everybody. */
  async ignore(): Promise<void> {
    this.#versions = []
    this.#written = ''
    await this.#enforcing
    for (const program of PROGRAMS) write(program, [`-A ${BY_SOURCE} -j ACCEPT`])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.ignore()
    } finally {
      this.#restore()
    }
  }

  #restore(): void {
    for (const [program, value] of this.#before) {
      removeRules(program, this.#bridge)
      if (existsSync(switchOf(this.#bridge, program))) writeFileSync(switchOf(this.#bridge, program), value)
    }
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
    if (this.#written === free.join(' ')) return
    const ofLink = linkAddresses(this.#bridge)
    for (const program of this.#versions) {
      const addresses = program === 'iptables' ? free : free.flatMap((address) => ofLink.get(address) ?? [])
      write(program, [
        ...addresses.map((address) => `-A ${BY_SOURCE} -s ${address} -j ${BY_DESTINATION}`),
        `-A ${BY_SOURCE} -j DROP`,
        ...addresses.map((address) => `-A ${BY_DESTINATION} -d ${address} -j ACCEPT`),
        // Without these nobody would find a neighbour by IPv6.
        ...(program === 'iptables' ? [] : [`-A ${BY_DESTINATION} -d ff02::/16 -j ACCEPT`]),
        `-A ${BY_DESTINATION} -m addrtype --dst-type LOCAL -j ACCEPT`,
        `-A ${BY_DESTINATION} -j DROP`,
      ])
    }
    this.#written = free.join(' ')
  }
}

/** Replaces both chains at once. */
function write(program: Program, rules: readonly string[]): void {
  const head = ['*filter', `:${BY_SOURCE} - [0:0]`, `:${BY_DESTINATION} - [0:0]`]
  execFileSync(`${program}-restore`, ['-w', '--noflush'], { input: [...head, ...rules, 'COMMIT', ''].join('\n') })
}

/** Removes both chains and all that leads to them, as far as they are there. @throws Error if something stays. */
function removeRules(program: Program, bridge: string): void {
  const isDone = (args: readonly string[]): boolean => spawnSync(program, ['-w', ...args]).status === 0
  for (const hook of HOOKS) while (isDone(['-D', hook, '-i', bridge, '-j', BY_SOURCE]));
  for (const action of ['-F', '-X']) for (const chain of [BY_SOURCE, BY_DESTINATION]) isDone([action, chain])
  if (run(program, ['-S']).includes(BY_SOURCE)) throw new Error(`${program} keeps rules of ${BY_SOURCE}`)
}

function run(program: Program, args: readonly string[]): string {
  return execFileSync(program, ['-w', ...args], { encoding: 'utf8' })
}

function switchOf(bridge: string, program: Program): string {
  return `/sys/class/net/${bridge}/bridge/${SWITCHES[program]}`
}

/** The IPv6 address that each pod of a network has on its link, by its IPv4 address: the kernel makes it from the hardware address. */
function linkAddresses(network: string): ReadonlyMap<string, string> {
  return new Map(podNetworks(network).map(({ address, mac }) => [address, linkAddressOf(mac)]))
}

function linkAddressOf(mac: string): string {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = mac.split(':').map((digits) => Number.parseInt(digits, 16))
  // The kernel turns the bit that says whether a hardware address is local.
  const pairs = [(a ^ 2) * 256 + b, c * 256 + 0xff, 0xfe00 + d, e * 256 + f]
  return `fe80::${pairs.map((pair) => pair.toString(16)).join(':')}`
}

function selects({ spec }: V1NetworkPolicy, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(spec?.podSelector?.matchLabels ?? {}).every(([name, value]) => labels[name] === value)
}

/** Gives this machine an address on the bridge, at which pods reach the API server, until it is disposed of. */
export async function serveOnBridge(
  bridge: string,
  address: string,
  server: URL,
): Promise<AsyncDisposable & { port: number }> {
  execFileSync('ip', ['address', 'replace', `${address}/24`, 'dev', bridge])
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
  const removeAddress = (): void => void execFileSync('ip', ['address', 'delete', `${address}/24`, 'dev', bridge])
  try {
    proxy.listen(0, address)
    await once(proxy, 'listening')
  } catch (error) {
    removeAddress()
    throw error
  }
  const { port } = proxy.address() as { port: number }
  return {
    port,
    async [Symbol.asyncDispose]() {
      proxy.close()
      removeAddress()
      await Promise.resolve()
    },
  }
}
