// Choices of a caller that an ONNX file leaves open.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace thimble {

struct OnnxChoices {
  std::vector<std::string>
      shapes;                      // "x=4,3,48,320", "x=rows,3,48,320", in pieces where commas were
  std::vector<std::string> fixed;  // "sr=16000": inputs that are one number everywhere
  std::string output;              // that the loss is of; empty: the first that can be
  std::string loss = "auto";       // one of kOnnxLosses
  std::string norms = "auto";      // "train", "frozen"
};

inline const std::vector<std::string> kOnnxLosses = {"auto", "cross_entropy", "bce", "mse",
                                                     "l1",   "dice",          "own"};
inline const std::vector<std::string> kOnnxNorms = {"auto", "train", "frozen"};

inline constexpr int64_t kRowsAxis = -1;

// By input; kRowsAxis where the rows are. UserError for one that is no shape, or there twice.
std::map<std::string, std::vector<int64_t>> shapes_in(const OnnxChoices& choices);
std::map<std::string, double> fixed_in(const OnnxChoices& choices);

}  // namespace thimble
