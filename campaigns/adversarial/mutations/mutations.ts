import type { Mutation } from './mutation.ts'
import { SANDBOX_MUTATIONS } from './of-sandboxes.ts'
import { HOST_MUTATIONS } from './of-the-host.ts'
import { SESSION_MUTATIONS } from './of-sessions.ts'
import { WORKSPACE_MUTATIONS } from './of-workspaces.ts'

/** The defences, in the order of the table in SECURITY.md. */
export const MUTATIONS: readonly Mutation[] = [
  ...SANDBOX_MUTATIONS,
  ...WORKSPACE_MUTATIONS,
  ...SESSION_MUTATIONS,
  ...HOST_MUTATIONS,
]
