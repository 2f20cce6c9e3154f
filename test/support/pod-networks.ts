import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The directory in which CNI keeps what it gave each pod. */
const CNI_RESULTS = '/var/lib/cni/results'
const POLL_MS = 20

/** The place of a pod of this machine in the network. */
export interface PodNetwork {
  readonly pod: string
  readonly address: string
  readonly mac: string
  /** The path of its network namespace. */
  readonly namespace: string
}

interface CniResult {
  readonly cniArgs?: readonly (readonly [string, string])[]
  readonly result: {
    readonly interfaces: readonly { readonly mac: string; readonly sandbox?: string }[]
    readonly ips: readonly { readonly address: string }[]
  }
}

/** Lists the pods that a network of CNI has on this machine. */
export function podNetworks(network: string): readonly PodNetwork[] {
  const files = readdirSync(CNI_RESULTS).filter((name) => name.startsWith(`${network}-`))
  return files.flatMap((name) => {
    const text = readOrNothing(join(CNI_RESULTS, name))
    if (text === '') return []
    const { cniArgs = [], result } = JSON.parse(text) as CniResult
    const own = result.interfaces.find(({ sandbox = '' }) => sandbox !== '')
    const pod = cniArgs.find(([key]) => key === 'K8S_POD_NAME')?.[1] ?? ''
    return result.ips.map(({ address }) => ({
      pod,
      address: address.split('/')[0] ?? '',
      mac: own?.mac ?? '',
      namespace: own?.sandbox ?? '',
    }))
  })
}

/** A pod that ends takes its file with it. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/**
 * Calls `change` for each pod that `isMeant`, as soon as it has a network, before its containers start. Disposing of it waits for the last
 * call, and throws what one threw.
 */
export function changePodNetworks(
  network: string,
  isMeant: (pod: string) => boolean | Promise<boolean>,
  change: (found: PodNetwork) => void,
): AsyncDisposable {
  const seen = new Set(podNetworks(network).map(({ namespace }) => namespace))
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const fresh = podNetworks(network).filter(({ namespace }) => !seen.has(namespace))
      for (const found of fresh) {
        seen.add(found.namespace)
        if (await isMeant(found.pod)) change(found)
      }
      await new Promise((resolve) => {
        setTimeout(resolve, POLL_MS)
      })
    }
  })()
  watching.catch(() => undefined) // thrown below
  return {
    async [Symbol.asyncDispose]() {
      isOver = true
      await watching
    },
  }
}

/** Runs `ip` in the network namespace of a pod. */
export function ipInPod({ namespace }: PodNetwork, ...args: readonly string[]): void {
  execFileSync('nsenter', [`--net=${namespace}`, 'ip', ...args])
}
