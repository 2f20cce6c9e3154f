import { afterEach } from 'vitest'
import { type SoakEnvironment, openEnvironment } from '../../../campaigns/soak/environment.ts'
import type { MachineEngine } from '../../support/walls.ts'
import { resolveLimits, sandboxLimits } from '../../../src/sandbox/index.ts'
import { eventually } from '../../support/eventually.ts'

const SPEC = { limits: sandboxLimits(resolveLimits()) }

let environment: SoakEnvironment | undefined
afterEach(async () => {
  await environment?.close()
  environment = undefined
})

/** The kinds of remaining resources, after a wait for those that are being removed. */
export async function kindsLeft(of: SoakEnvironment): Promise<string[]> {
  let kinds: string[] = []
  await eventually(async () => {
    kinds = Object.keys(await of.remains()).toSorted()
    return kinds.length === 0 ? undefined : 'something is left'
  }, 5000)
  return kinds
}

/** An engine on which one sandbox lives. */
export async function withSandbox(name: MachineEngine): Promise<{ at: SoakEnvironment; end: () => Promise<void> }> {
  const at = (environment = openEnvironment(name))
  const sandbox = await at.engine.create(SPEC)
  at.noteExistingFiles()
  return { at, end: () => sandbox.destroy() }
}

/** The same engine without a list of living sandboxes, so that their resources count as remains. */
export function allEnded({ engine }: SoakEnvironment): Pick<SoakEnvironment['engine'], 'living' | 'ended'> {
  return { living: new Map(), ended: engine.living }
}
