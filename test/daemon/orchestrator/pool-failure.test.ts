import { onDockerAlone } from '../../sandbox/orchestrator/engine-alone.ts'
import { lostSandboxTests } from '../../sandbox/orchestrator/lost-sandboxes.ts'

await onDockerAlone(lostSandboxTests)
