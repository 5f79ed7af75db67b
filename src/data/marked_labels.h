// An ability of data sets whose labels do not all count: where a loss is a mean over labels, the
// feeder asks how many of a record's do. Of other sets all count.
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace thimble {

class MarkedLabels {
 public:
  virtual ~MarkedLabels() = default;
  // REQUIRES: 0 <= index < info().count(split).
  virtual int64_t counted(Split split, int64_t index) const = 0;

 protected:
  MarkedLabels() = default;
  MarkedLabels(const MarkedLabels&) = default;
  MarkedLabels& operator=(const MarkedLabels&) = default;
};

}  // namespace thimble
