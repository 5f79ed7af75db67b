// The factor between modelled and measured time, taken from the nearest relatives of a kernel. So a
// plan never compares measured with unscaled modelled seconds, and an unmeasured kernel does not
// look faster.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "execute/cost_table.h"

namespace thimble {

class ModelScale {
 public:
  // REQUIRES: the table outlives it.
  explicit ModelScale(const CostTable& measured);

  // Relatives are measured kernels of the same op and dtypes, else of the same op, else all.
  // Kernels of about the same modelled time count most: errors of the model (caches, launches) go
  // by size. 1 where nothing was measured.
  double of(std::string_view key, double modelled) const;

 private:
  // "conv2d(f32[8,32,32,16] f32[16,3,3,16]) ... by own" -> "conv2d f32 f32 f32"
  static std::string kind_of(std::string_view key);

  using Relatives = std::vector<const KernelTime*>;
  std::map<std::string, Relatives, std::less<>> by_kind_, by_op_;
  double all_ = 1;
};

}  // namespace thimble
