// Loss and metrics, added up over batches.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "execute/program.h"
#include "model/model.h"

namespace thimble {

class Communicator;

struct Figure {
  std::string name;  // as Metric has it, and the next two
  std::string brief;
  bool share = false;
  double value = 0;
};

// Means of a number of batches.
struct Figures {
  double loss = 0;
  std::vector<Figure> metrics;

  // 0 when there is no such metric.
  double operator[](std::string_view metric) const;
};

class MetricAccumulator {
 public:
  explicit MetricAccumulator(const Model& model);

  // Adds the results of a program that has just run, of `model` (that the tally is for, or of a
  // variant of it). `counted` is what the batch's loss is a mean over; the loss counts `weight`
  // times.
  void add(Program& program, const Model& model, double counted, double weight);

  // Adds what all ranks have.
  void add_up(Communicator& ranks);

  Figures figures() const;
  bool empty() const { return weight_ == 0; }
  void clear();

  nlohmann::json to_json() const;
  // False when it is not what to_json() writes. Without metrics, which older checkpoints do not
  // have by name, those begin anew.
  bool from_json(const nlohmann::json& json);

 private:
  struct Sum {
    double sum = 0;
    double count = 0;
  };

  const std::vector<Metric> metrics_;
  double loss_ = 0;
  double weight_ = 0;
  std::vector<Sum> sums_;  // by metric
};

}  // namespace thimble
