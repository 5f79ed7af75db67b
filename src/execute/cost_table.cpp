#include "execute/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"

namespace thimble {
namespace {

constexpr const char* kFormat = "thimble-costs-1";
constexpr std::string_view kRandomStream = "stream";
// Of a kernel, or of a whole step. Outside of these sums and ratios of times would not be numbers.
constexpr double kShortest = 1e-12, kLongest = 1e6;

std::string join(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : " ") + to_string(type);
  return text;
}

Attrs settings_that_matter(const Attrs& attrs) {
  Attrs kept;
  for (const auto& [name, value] : attrs.entries()) {
    if (!std::holds_alternative<double>(value) && name != kRandomStream) kept.set(name, value);
  }
  return kept;
}

bool is_date(std::string_view text) {
  constexpr std::string_view kPattern = "dddd-dd-dd";
  return std::ranges::equal(text, kPattern, [](char c, char p) {
    return p == 'd' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == p;
  });
}

KernelTime kernel_time_from(const nlohmann::json& json, const std::string& key) {
  KernelTime time = {json.at("seconds").get<double>(), json.at("modelled").get<double>(),
                     json.at("date").get<std::string>()};
  for (const double seconds : {time.seconds, time.modelled}) {
    user_check(seconds >= kShortest && seconds <= kLongest, "'{}' cannot take {} seconds", key,
               seconds);
  }
  user_check(is_date(time.date), "'{}' is not the date of a measurement", time.date);
  return time;
}

CostFile costs_from(const nlohmann::json& json) {
  user_check(json.is_object() && json.value("format", "") == kFormat, "it is no file of costs");
  CostFile file;
  for (const auto& [machine, kernels] : json.at("machines").items()) {
    user_check(kernels.is_object(), "the kernels of '{}' are no list of names and times", machine);
    CostTable& table = file[machine];
    for (const auto& [key, time] : kernels.items()) table[key] = kernel_time_from(time, key);
  }
  return file;
}

}  // namespace

std::string kernel_key(const Signature& signature, const Kernel& kernel) {
  std::string key =
      fmt::format("{}({}){} -> {}", signature.op->name, join(signature.inputs),
                  to_string(settings_that_matter(signature.attrs)), join(signature.outputs));
  for (size_t k = 0; k < signature.outputs.size(); ++k) {
    if (((signature.accumulate >> k) & 1u) != 0) key += fmt::format(" added into {}", k);
  }
  return key + " by " + kernel.name;
}

std::string_view op_of_key(std::string_view key) { return key.substr(0, key.find('(')); }

std::string_view task_of_key(std::string_view key) { return key.substr(0, key.rfind(" by ")); }

CostFile read_costs(const std::string& path) {
  const std::string text = read_text(path, "a file of costs", kLargestJsonFile);
  std::string fault;
  try {
    return costs_from(parse_json(text));
  } catch (const nlohmann::json::exception& error) {
    fault = why_refused(error);
  } catch (const UserError& error) {
    fault = error.what();
  }
  user_error(
      "the measured costs in '{}' cannot be used: {}; delete the file and run `thimble "
      "calibrate` again, or pass --costs modelled",
      path, fault);
}

void write_costs(const std::string& path, const CostFile& file) {
  nlohmann::json machines = nlohmann::json::object();
  for (const auto& [machine, table] : file) {
    nlohmann::json& kernels = machines[machine] = nlohmann::json::object();
    for (const auto& [key, time] : table) {
      kernels[key] = {{"seconds", time.seconds}, {"modelled", time.modelled}, {"date", time.date}};
    }
  }
  const std::string folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) ensure_directory(folder);
  write_file(path, json_text({{"format", kFormat}, {"machines", machines}}, 1) + "\n");
}

void add_costs(const std::string& path, const std::string& machine, const CostTable& table,
               const std::vector<std::string>& forgotten) {
  CostFile file;
  if (exists(path)) file = read_costs(path);
  for (const std::string& key : forgotten) file[machine].erase(key);
  for (const auto& [key, time] : table) file[machine][key] = time;
  write_costs(path, file);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::localtime(&now));
  return date;
}

}  // namespace thimble
