// The cost of every node of a graph on a backend: measured time where there is one, else modelled time.
#pragma once

#include "backend/backend.h"
#include "execute/cost_table.h"
#include "plan/plan.h"

namespace thimble {

// Tables also hold whole steps, under names that begin like this op's would: there is no such op.
inline constexpr std::string_view kWholeStep = "step";
// And what joins ranks: seconds of a message's way, and of a byte.
inline constexpr std::string_view kLinkLatency = "link_latency", kLinkByte = "link_byte";

std::string link_key(std::string_view what, int ranks);

// The time of the signature's kernel; where it has variants, of the fastest that was measured,
// which the kernel uses from then on. Null: not measured, and the kernel stays as it is.
const KernelTime* use_fastest(const Signature& signature, Kernel& kernel,
                              const CostTable& measured);

// Kernels that `measured` does not know get the backend's modelled time, scaled like their nearest
// relatives (model_scale.h). Nodes with equal signatures are asked
// about once; views are free. An empty table is the model alone, and so is a device that runs
// nothing.
// Kernels that have variants use the fastest of those that `measured` knows from then on.
Costs gather_costs(const Graph& graph, Backend& backend, const CostTable& measured = {});

}  // namespace thimble
