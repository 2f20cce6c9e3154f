import { requireDockerEngine } from '../../../test/support/docker-engine.ts'
import { openEngine, stateFor } from './docker.ts'
import { hardensContainer } from './faults/container-config.ts'
import { timesOutPausedContainer, replacesRemovedContainer } from './faults/containers.ts'
import { reportsUnreachableDaemon } from './faults/daemons.ts'
import { ignoresForeignLabels, sharesDaemonBetweenHosts } from './faults/labels.ts'
import { cleansUpAfterKilledHost, resumesSuspendedHost } from './faults/lost-hosts.ts'
import { reportsMemoryKill, toleratesMemoryKillOfChild } from './faults/memory-kills.ts'
import { failsClosedWithoutFilter } from './faults/images.ts'
import { type Exclusion, FILES_OF_THE_HOST, INSTALLATION, NO_BRIDGE, type TestedEngine } from './tested.ts'

/** Tests of the docker engine, on the daemon of the machine. */
export const DOCKER: TestedEngine = {
  name: 'docker',
  async ready() {
    const { skip, image } = await requireDockerEngine()
    return { skip, open: () => openEngine(stateFor(image)) }
  },
  faults: new Map([
    ['FLT-001', ({ engine }) => cleansUpAfterKilledHost(engine)],
    ['FLT-005', reportsUnreachableDaemon],
    ['FLT-007', ({ engine }) => reportsMemoryKill(engine)],
    ['FLT-008', ({ engine }) => toleratesMemoryKillOfChild(engine)],
    ['FLT-010', replacesRemovedContainer],
    ['FLT-011', timesOutPausedContainer],
    ['FLT-014', failsClosedWithoutFilter],
    ['FLT-023', ({ engine }) => resumesSuspendedHost(engine)],
    ['FLT-025', ignoresForeignLabels],
    ['FLT-026', sharesDaemonBetweenHosts],
    ['FLT-031', hardensContainer],
  ]),
  excluded: new Map<string, Exclusion>([
    ...NO_BRIDGE,
    ...INSTALLATION,
    ...FILES_OF_THE_HOST,
    [
      'FLT-004',
      {
        file: 'daemon/engines/docker/daemon-faults.test.ts',
        test: 'FLT-004: that %s in the middle of a run: sandbox-lost',
      },
    ],
    ['FLT-013', { why: 'the docker engine uses no bubblewrap, and its daemon makes the namespaces' }],
    [
      'FLT-015',
      {
        file: 'daemon/engines/docker/daemon-faults.test.ts',
        test: 'refuses new containers with no_space, keeps those that run',
      },
    ],
    ['FLT-016', { why: 'the docker engine has no state directory' }],
  ]),
}
