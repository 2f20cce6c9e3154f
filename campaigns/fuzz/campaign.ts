import { findPythons } from '../../scripts/find-pythons.ts'
import type { SandboxEngine } from '../../src/sandbox/index.ts'
import { createSandglass } from '../../src/sandglass.ts'
import { brokerCases } from './broker/broker-case.ts'
import { Peer } from './broker/peer.ts'
import { sandboxCases } from './broker/sandbox-case.ts'
import { drive, type DriveOptions, type DriveReport } from './drive.ts'
import type { CaseMaker } from './fuzz-case.ts'
import { silentCase } from './host/executor-case.ts'
import { hostCase } from './host/host-case.ts'
import { storeWorkspace } from './trees/damaged-case.ts'
import { restoreCases } from './trees/restore-case.ts'
import { treeCases } from './trees/tree-case.ts'

/** The cases to run on one side of the protocol. */
export interface Campaign {
  readonly seed: number
  readonly count: number
  /** Runs only this case, of the part with this name. */
  readonly only?: { readonly side: string; readonly number: number }
  readonly withinMs?: number
  /** The engine for cases in real sandboxes; without it they are skipped. */
  readonly engine?: SandboxEngine
  readonly onReport: (report: DriveReport) => void
  readonly onProgress?: (side: string, done: number) => void
}

/** One of this many host cases has a peer that falls silent; each takes 5 s, and 250 run at a time. */
const SILENT_SHARE = 1000
const SILENT_AT_ONCE = 250
/** One of this many broker cases runs in a new sandbox. */
const SANDBOX_SHARE = 400
const SANDBOXES_AT_ONCE = 2
/** One of this many cases of stored trees is restored into a new sandbox. */
const RESTORED_SHARE = 200
/** The number of processes with the broker's code. */
const PEERS = 3
const BROKER_AT_ONCE = 48

/** Runs cases against all code that reads data of a sandbox. */
export async function hostCampaign(campaign: Campaign): Promise<void> {
  const silent = Math.ceil(campaign.count / SILENT_SHARE)
  await part(campaign, 'host', hostCase, campaign.count - silent)
  await part(campaign, 'silent', silentCase, silent, { atOnce: SILENT_AT_ONCE })
}

/** Runs cases against all code that reads workspaces from a store; with an engine, also restores into real sandboxes. */
export async function treeCampaign(campaign: Campaign): Promise<void> {
  const restored = Math.ceil(campaign.count / RESTORED_SHARE)
  using stored = await storeWorkspace()
  await part(campaign, 'tree', treeCases(stored), campaign.count - restored)
  if (campaign.engine === undefined) return
  await using sg = await createSandglass({ engine: campaign.engine, poolSize: 0 })
  await part(campaign, 'restore', restoreCases(sg), restored, { atOnce: SANDBOXES_AT_ONCE, caseMs: 180_000 })
}

/** Runs cases against all code of the harness that reads data of a host or of a script's process. */
export async function brokerCampaign(campaign: Campaign): Promise<void> {
  const inSandboxes = Math.ceil(campaign.count / SANDBOX_SHARE)
  const python = findPythons()[0]?.executable
  if (python === undefined) throw new Error('no Python >= 3.10 was found; install python3 (3.10 or later)')
  await using stack = new AsyncDisposableStack()
  const peers = Array.from({ length: PEERS }, () => stack.use(new Peer(python)))
  const measureMemory = async (): Promise<number> =>
    (await Promise.all(peers.map((peer) => peer.memory()))).reduce((a, b) => a + b)
  await part(campaign, 'broker', brokerCases(peers), campaign.count - inSandboxes, {
    atOnce: BROKER_AT_ONCE,
    caseMs: 120_000,
    measureMemory,
  })
  if (campaign.engine === undefined) return
  await using sg = await createSandglass({ engine: campaign.engine, poolSize: 0 })
  await part(campaign, 'sandbox', sandboxCases(campaign.engine, sg), inSandboxes, {
    atOnce: SANDBOXES_AT_ONCE,
    caseMs: 180_000,
  })
}

async function part(
  { seed, only, withinMs, onReport, onProgress }: Campaign,
  side: string,
  make: CaseMaker,
  count: number,
  options: Pick<DriveOptions, 'atOnce' | 'caseMs' | 'measureMemory'> = {},
): Promise<void> {
  if (only !== undefined && only.side !== side) return
  const which = only === undefined ? { count } : { count: 1, first: only.number }
  const report = await drive({
    seed,
    side,
    make,
    ...options,
    ...which,
    ...(withinMs === undefined ? {} : { withinMs }),
    ...(onProgress === undefined ? {} : { onProgress: (done: number) => onProgress(side, done) }),
  })
  onReport(report)
}
