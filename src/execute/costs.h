// The cost of every node of a graph on a backend: measured time where there is one, else modelled
// time.
#pragma once

#include "backend/backend.h"
#include "execute/cost_table.h"
#include "plan/plan.h"

namespace thimble {

// Tables also hold the times of whole steps, under keys of a fictitious op "step",
inline constexpr std::string_view kWholeStep = "step";
// and of the link between ranks: latency of a message, and seconds a byte.
inline constexpr std::string_view kLinkLatency = "link_latency", kLinkByte = "link_byte";

std::string link_key(std::string_view what, int ranks);

// The measured time of the signature's kernel, or null. A tunable kernel uses its fastest measured
// variant from then on, and the time is that variant's.
const KernelTime* use_fastest(const Signature& signature, Kernel& kernel,
                              const CostTable& measured);

// Kernels that `measured` lacks get the backend's modelled time, scaled like their nearest
// relatives (model_scale.h). Views are free. With an empty table, and for a device that runs
// nothing, all times are modelled. Tunable kernels use their fastest measured variant from then on.
Costs gather_costs(const Graph& graph, Backend& backend, const CostTable& measured = {});

}  // namespace thimble
