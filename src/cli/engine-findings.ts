import type { SandboxReport } from '../sandbox/index.ts'

/** What `doctor` tells of one engine; the keys of its JSON. */
export interface EngineFindings {
  readonly name: string
  readonly usable: boolean
  readonly level: SandboxReport['level']
  readonly reasons: readonly {
    readonly severity: 'error' | 'warning'
    readonly code: string
    readonly message: string
    readonly remedy: string
  }[]
  readonly limits_enforced: SandboxReport['limitsEnforced']
  readonly network: SandboxReport['network'] | null
  readonly capabilities: Readonly<Record<string, boolean>>
  readonly probes: SandboxReport['probes']
}
