/**
 * A host of its own for tests that take its control groups away: `limits-host.ts '{"runs": […]}'` makes a
 * Sandglass, runs a script under each limit that is asked for, and prints what came of it.
 */
import { createSandglass, type ResourceLimits, SandglassError } from '../../../src/index.ts'

/** What such a host is to do. */
export interface LimitsOrder {
  readonly limits?: ResourceLimits
  /** Limits of each run, and its script. */
  readonly runs?: readonly { readonly limits: ResourceLimits; readonly script: string }[]
}

/** What came of the whole order, or of one run. */
export interface Outcome {
  readonly refused?: { readonly code: string; readonly message: string }
  readonly limitsEnforced?: readonly string[]
  readonly finalData?: unknown
}

const order = JSON.parse(process.argv[2] ?? '') as LimitsOrder
console.log(JSON.stringify(await outcomes(order)))

async function outcomes({ limits = {}, runs = [] }: LimitsOrder): Promise<Outcome[]> {
  try {
    await using sandglass = await createSandglass({ engine: 'local', limits, poolSize: 1 })
    const found: Outcome[] = []
    for (const run of runs) {
      const one = sandglass.run(run.script, { limits: run.limits })
      found.push(await one.then(({ sandbox, finalData }) => ({ ...picked(sandbox), finalData }), refused))
    }
    return found
  } catch (error) {
    return [refused(error)]
  }
}

function picked({ limitsEnforced }: { readonly limitsEnforced: readonly string[] }): Outcome {
  return { limitsEnforced }
}

function refused(error: unknown): Outcome {
  if (!(error instanceof SandglassError)) throw error
  return { refused: { code: error.code, message: error.message } }
}
