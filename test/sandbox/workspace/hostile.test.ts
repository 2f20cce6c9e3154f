import { testHostileActivities } from '../../support/hostile-activities.ts'
import { inWorkspace } from '../../support/workspace-on-local.ts'

await inWorkspace((at) => testHostileActivities(at))
