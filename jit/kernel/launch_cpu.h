// A launch as the processors see it, for the CPU's interpreter and its host.
#pragma once

VP Launch launch_of(const vpps_launch *run) {
  Launch l;
  for (int s = 0; s <= SEGMENTS; s++)
    l.segment[s] = run->segment[s];
  l.script = run->script;
  l.counters = l.script + l.script[HEAD_COUNTERS];
  l.status = run->status;
  l.batch = run->batch;
  l.processors = run->script[HEAD_PROCESSORS];
  return l;
}
