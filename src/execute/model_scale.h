// What a modelled time is worth beside measured ones: measured over modelled time of the kernel's nearest
// relatives. So a plan never weighs seconds of the machine against seconds of the model, and a kernel
// that nobody measured is not the faster for it.
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

  // Of the relatives: what was measured of the same op with the same types of numbers, else of the same
  // op; those of about the same modelled time count most, since what the model leaves out (caches, the
  // way to a kernel) goes by size. Of everything, where the op was not measured at all; 1, where nothing
  // was.
  double of(std::string_view key, double modelled) const;

 private:
  // "conv2d(f32[8,32,32,16] f32[16,3,3,16]) ... by own" -> "conv2d f32 f32 f32"
  static std::string kind_of(std::string_view key);

  using Relatives = std::vector<const KernelTime*>;
  std::map<std::string, Relatives, std::less<>> by_kind_, by_op_;
  double all_ = 1;
};

}  // namespace thimble
