import { describe } from 'vitest'
import { onDockerAlone } from '../../sandbox/orchestrator/engine-alone.ts'
import { orchestratorTests } from '../../sandbox/orchestrator/orchestrator.ts'

describe('ToolOrchestrator', async () => {
  await onDockerAlone(orchestratorTests)
})
